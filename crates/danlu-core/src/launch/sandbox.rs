//! What holds for all programs of jobs, whatever they ask for: which environment reaches them, and what they may not do.

use serde::{Deserialize, Serialize};

/// What the server decides for the processes of each worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Their umask, where the server has one of its own; the launcher's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// They get no new privileges, and system calls that no training needs are refused.
    #[serde(default)]
    pub restricted: bool,
    /// Accelerators of the machine that a worker was not given are closed to it, where the kernel can.
    #[serde(default)]
    pub closed_devices: bool,
    /// What is the server's and other jobs' in the data folder is closed to it, where the kernel can.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed_data: bool,
}

/// Of a server's environment, what its jobs may have. Everything else may be a secret: passwords of databases, keys of object
/// stores, tokens of services.
const PASSED_ON: [&str; 40] = [
    "ATB_HOME_PATH",
    "CPATH",
    "CURL_CA_BUNDLE",
    "FTP_PROXY",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LANGUAGE",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "LOADEDMODULES",
    "LOGNAME",
    "MAIL",
    "MANPATH",
    "MODULEPATH",
    "MODULESHOME",
    "NO_PROXY",
    "ALL_PROXY",
    "OLDPWD",
    "PATH",
    "PKG_CONFIG_PATH",
    "PYTHONHOME",
    "PYTHONPATH",
    "REQUESTS_CA_BUNDLE",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TOOLCHAIN_HOME",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
    "XDG_DATA_DIRS",
    "all_proxy",
    "ftp_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Where drivers, toolkits and communication libraries are, and how they are tuned.
const PASSED_ON_PREFIXES: [&str; 13] = [
    "ASCEND_", "CONDA_", "CUDA_", "GLOO_", "HCCL_", "LC_", "LMOD_", "MKL_", "NCCL_", "NVIDIA_", "OMPI_",
    "OMP_", "UCX_",
];

/// Words that make a variable a secret, whatever it begins with.
const SECRET_WORDS: [&str; 5] = ["CREDENTIAL", "KEY", "PASSWORD", "SECRET", "TOKEN"];

/// Whether the jobs of a server are given this variable of its environment. `further` are names that its administrator adds,
/// `NAME` or `PREFIX*`; what is Danlu's own stays so. A proxy's address with a user in it is a secret unless added.
pub fn is_passed_on(name: &str, value: &str, further: &[String]) -> bool {
    if name.starts_with("DANLU_") {
        return false;
    }
    let asked_for = further.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    });
    let is_usual = || {
        PASSED_ON.contains(&name) && !is_proxy_with_user(name, value)
            || (PASSED_ON_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                && !SECRET_WORDS.iter().any(|word| name.contains(word)))
    };
    asked_for || is_usual()
}

/// `http://user:password@proxy:3128`, in a variable that names a proxy; the scheme may be left out.
pub fn is_proxy_with_user(name: &str, value: &str) -> bool {
    let is_proxy = name.to_ascii_lowercase().ends_with("_proxy") && !name.eq_ignore_ascii_case("no_proxy");
    let address = value.split_once("://").map_or(value, |(_, address)| address);
    // Anywhere: a slash in the password is against the rules, and there are programs that take it.
    is_proxy && address.contains('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_the_server_are_not_its_jobs() {
        for secret in [
            "PGPASSWORD",
            "PGPASSFILE",
            "DANLU_DATABASE",
            "AWS_SECRET_ACCESS_KEY",
            "SSH_AUTH_SOCK",
            "NVIDIA_API_KEY",
            "CONDA_TOKEN",
            "HF_TOKEN",
            "XDG_RUNTIME_DIR",
            "",
        ] {
            assert!(!is_passed_on(secret, "", &[]), "{secret}");
        }
        for usual in
            ["PATH", "LD_LIBRARY_PATH", "ASCEND_HOME_PATH", "CUDA_HOME", "https_proxy", "LC_ALL", "TZ"]
        {
            assert!(is_passed_on(usual, "", &[]), "{usual}");
        }
    }

    #[test]
    fn an_administrator_may_add_names_but_not_our_own() {
        let further = ["HF_HOME".to_owned(), "SITE_*".to_owned(), "DANLU_*".to_owned()];
        for added in ["HF_HOME", "SITE_TOKEN"] {
            assert!(is_passed_on(added, "", &further), "{added}");
        }
        for not in ["HF_TOKEN", "DANLU_DATABASE", "XSITE_A"] {
            assert!(!is_passed_on(not, "", &further), "{not}");
        }
    }

    #[test]
    fn a_password_for_a_proxy_is_not_its_jobs() {
        for (name, value) in [
            ("HTTPS_PROXY", "http://user:pw@proxy:3128"),
            ("https_proxy", "user:pw@proxy:3128/"),
            ("ALL_PROXY", "socks5h://user@proxy"),
            ("http_proxy", "http://user:p/w@proxy"),
        ] {
            assert!(!is_passed_on(name, value, &[]), "{name}={value}");
            assert!(is_passed_on(name, value, &["*".to_owned()]), "{name}={value}");
        }
        for (name, value) in
            [("HTTPS_PROXY", "http://proxy:3128/"), ("no_proxy", "a@b"), ("PATH", "/opt/a@2/bin")]
        {
            assert!(is_passed_on(name, value, &[]), "{name}={value}");
        }
    }
}
