//! What a job gets of the shell that it is submitted from: its virtual or conda environment.
//!
//! Jobs have the server's environment. A command that is typed in a shell with an activated environment is meant to run
//! in it, and can where the files are the same: on the server's own machine, with no code snapshot.

use danlu_types::JobSpec;

/// What activates an environment, and what else belongs to it.
const ENVIRONMENTS: [(&str, &[&str]); 2] = [
    ("VIRTUAL_ENV", &["VIRTUAL_ENV_PROMPT"]),
    ("CONDA_PREFIX", &["CONDA_DEFAULT_ENV", "CONDA_PYTHON_EXE", "CONDA_EXE"]),
];

/// Puts the shell's environment into the job, or says why the job does not get it; a sentence for whoever submits.
pub(crate) fn take_along(
    spec: &mut JobSpec,
    variable: impl Fn(&str) -> Option<String>,
    server_is_here: bool,
) -> Option<String> {
    let active = ENVIRONMENTS.iter().find_map(|(name, others)| Some((*name, *others, variable(name)?)));
    let (name, others, folder) = active?;
    if spec.env.contains_key("PATH") || spec.env.contains_key(name) {
        return None;
    }
    let difference = if spec.code.is_some() {
        "it runs a code snapshot"
    } else if !server_is_here {
        "its server is on another machine"
    } else {
        let path = variable("PATH")?;
        let more = others.iter().filter_map(|other| Some((*other, variable(other)?)));
        for (name, value) in [("PATH", path), (name, folder.clone())].into_iter().chain(more) {
            spec.env.entry(name.to_owned()).or_insert(value);
        }
        return Some(format!("the job runs with this shell's environment `{folder}`"));
    };
    Some(format!(
        "the job does not have this shell's environment `{folder}`: {difference}; activate one in `setup`, \
         or name its programs by their whole paths"
    ))
}

/// Whether a server's address is of this machine.
pub(crate) fn is_here(address: &str) -> bool {
    let host = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = host.split('/').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(name: &str) -> Option<String> {
        match name {
            "VIRTUAL_ENV" => Some("/home/lin/venv".to_owned()),
            "PATH" => Some("/home/lin/venv/bin:/usr/bin".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn an_activated_environment_goes_with_jobs_of_this_machine() {
        let mut spec = JobSpec::of_command("python x.py");
        let said = take_along(&mut spec, shell, true).unwrap();
        assert!(said.contains("runs with") && said.contains("/home/lin/venv"), "{said}");
        assert_eq!(spec.env["PATH"], "/home/lin/venv/bin:/usr/bin");
        assert_eq!(spec.env["VIRTUAL_ENV"], "/home/lin/venv");
    }

    #[test]
    fn where_it_cannot_go_it_is_told() {
        let mut spec = JobSpec::of_command("python x.py");
        let said = take_along(&mut spec, shell, false).unwrap();
        assert!(said.contains("does not have") && spec.env.is_empty(), "{said}");
        spec.code = Some("sha256:0".to_owned());
        let said = take_along(&mut spec, shell, true).unwrap();
        assert!(said.contains("code snapshot") && spec.env.is_empty(), "{said}");
    }

    #[test]
    fn nothing_is_said_without_one_or_where_the_job_names_its_own() {
        let mut spec = JobSpec::of_command("python x.py");
        assert_eq!(take_along(&mut spec, |_| None, true), None);
        spec.env.insert("PATH".to_owned(), "/opt/bin".to_owned());
        assert_eq!(take_along(&mut spec, shell, true), None);
        assert_eq!(spec.env["PATH"], "/opt/bin");
    }

    #[test]
    fn loopback_addresses_are_here() {
        for address in ["http://127.0.0.1:8765", "https://localhost", "http://[::1]:80/"] {
            assert!(is_here(address), "{address}");
        }
        for address in ["http://10.0.0.2:8765", "https://danlu.example.org", "http://[2001:db8::1]:80"] {
            assert!(!is_here(address), "{address}");
        }
    }
}
