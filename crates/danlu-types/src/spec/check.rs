//! What is wrong with a job's values, all of it at once, each with what would be accepted.

use super::{HIGHEST_PRIORITY, JobSpec, LOWEST_PRIORITY, OnHang, RanksPerWorker};
use crate::{Cpus, DeviceCount, DeviceRequest, FieldError, Span};

/// Fields of the job file that belong to parts of Danlu which this version does not have yet. They are refused like any
/// unknown field, but with this sentence instead of "unknown".
pub const FIELDS_OF_LATER_VERSIONS: [(&str, &str); 3] = [
    ("inputs", "staging of inputs is not in this version; name paths of this machine in `command` or `env`"),
    ("outputs", "staging of outputs is not in this version; write to `$DANLU_OUTPUT_DIR`"),
    ("endpoints", "endpoints are not in this version; use `danlu exec -it JOB` for a terminal"),
];

const LONGEST_NAME: usize = 63;
const LONGEST_COMMAND: usize = 64 * 1024;
const MOST_WORKERS: u32 = 65_536;
const MOST_RANKS_PER_WORKER: u32 = 1024;
const MOST_DEVICES: u32 = 1024;
const MOST_ALTERNATIVES: usize = 8;
const MOST_NODE_LABELS: usize = 32;
const MOST_ENTRIES: usize = 1000;
const LONGEST_VALUE: usize = 32 * 1024;
const MOST_RETRIES: u32 = 1000;
/// A share keeps its device from whoever asks for a whole one, so it cannot cost next to nothing.
const LEAST_SHARE: DeviceCount = DeviceCount::share_of(50);
/// Which devices a worker was given; its programs learn it from these.
const SET_BY_GRANT: [&str; 10] = [
    "ASCEND_RT_VISIBLE_DEVICES",
    "ASCEND_VISIBLE_DEVICES",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "GPU_DEVICE_ORDINAL",
    "HIP_VISIBLE_DEVICES",
    "NPU_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
];

/// Whether a variable says which devices a worker was given: nobody but Danlu sets those.
pub fn is_set_by_grant(variable: &str) -> bool {
    SET_BY_GRANT.contains(&variable)
}

/// No sample could tell anything of a shorter time.
const SHORTEST_HANG: Span = Span::from_seconds(1);

impl JobSpec {
    fn check_devices(&self, errors: &mut Errors) {
        if !self.any_of.is_empty() && self.devices != DeviceRequest::default() {
            errors.add("any_of", "cannot be combined with `devices`; set one of them".to_owned());
        }
        if self.any_of.len() > MOST_ALTERNATIVES {
            errors
                .add("any_of", format!("has {} entries; the most is {MOST_ALTERNATIVES}", self.any_of.len()));
        }
        for (position, request) in self.alternatives().iter().enumerate().take(MOST_ALTERNATIVES) {
            let field =
                if self.any_of.is_empty() { "devices".to_owned() } else { format!("any_of.{position}") };
            errors.range(&format!("{field}.count"), request.count.devices(), 0, MOST_DEVICES);
            if !request.count.is_none() && request.count < LEAST_SHARE {
                let message = format!("is {}; the least share of a device is {LEAST_SHARE}", request.count);
                errors.add(format!("{field}.count"), message);
            }
            if let Some(model) = &request.model {
                errors.text(&format!("{field}.model"), model, LONGEST_NAME);
            }
            if !self.any_of.is_empty() && request.count.is_none() {
                errors.add(format!("{field}.count"), "is 0; an alternative needs a device".to_owned());
            }
        }
    }

    fn check_nodes(&self, errors: &mut Errors) {
        if let Some(architecture) = &self.nodes.architecture {
            errors.text("nodes.architecture", architecture, LONGEST_NAME);
        }
        if self.nodes.labels.len() > MOST_NODE_LABELS {
            let count = self.nodes.labels.len();
            errors.add("nodes.labels", format!("has {count} entries; at most {MOST_NODE_LABELS} are taken"));
        }
        for (name, value) in self.nodes.labels.iter().take(MOST_NODE_LABELS) {
            let field = format!("nodes.labels.{}", shown(name));
            errors.text(&field, name, LONGEST_NAME);
            errors.text(&field, value, 1024);
        }
    }

    /// Everything that is wrong with the values of this job; empty when nothing is.
    pub fn check(&self) -> Vec<FieldError> {
        let mut errors = Errors(Vec::new());
        errors.name("name", &self.name);
        errors.name("workspace", &self.workspace);
        if self.image != "host" {
            let image: String = self.image.chars().take(100).collect();
            errors.add(
                "image",
                format!("cannot be `{image}`: only `host` is supported, there are no containers yet"),
            );
        }
        errors.range("workers", self.workers, 1, MOST_WORKERS);
        self.check_devices(&mut errors);
        self.check_nodes(&mut errors);
        if self.cpus < (Cpus { milli: 10 }) {
            errors.add("cpus", format!("{} is too little; the least is 0.01", self.cpus));
        }
        if let Some(RanksPerWorker::Count(count)) = self.ranks {
            errors.range("ranks", count, 1, MOST_RANKS_PER_WORKER);
        }
        if self.command.trim().is_empty() {
            errors.add("command", "is empty; write what to run, such as `python train.py`".to_owned());
        }
        errors.text("command", &self.command, LONGEST_COMMAND);
        errors.range("priority", u32::from(self.priority()), LOWEST_PRIORITY.into(), HIGHEST_PRIORITY.into());
        errors.range("retry.limit", self.retry.limit, 0, MOST_RETRIES);
        if self.on_hang == OnHang::Restart && (self.hang_after.is_none() || self.retry.limit == 0) {
            let message = "`restart` needs `hang_after`, and a `retry.limit` of 1 or more";
            errors.add("on_hang", message.to_owned());
        }
        if self.hang_after.is_some_and(|span| span < SHORTEST_HANG) {
            errors.add("hang_after", format!("is too short; the least is {SHORTEST_HANG}"));
        }
        for (field, path) in [("setup", &self.setup), ("checkpoint", &self.checkpoint)] {
            if let Some(path) = path {
                errors.relative_path(field, path);
            }
        }
        if let Some(folder) = &self.working_directory {
            errors.text("working_directory", folder, 4096);
            if !folder.starts_with('/') {
                errors.add(
                    "working_directory",
                    "must be an absolute path, such as `/home/me/project`".to_owned(),
                );
            }
            if self.code.is_some() {
                errors.add("working_directory", "cannot stand beside `code`; give one of them".to_owned());
            }
        }
        if let Some(code) = &self.code
            && !is_digest(code)
        {
            let message = "is not the digest of an uploaded snapshot (`sha256:` and 64 hex digits); \
                           `danlu submit` uploads a folder and fills this in";
            errors.add("code", message.to_owned());
        }
        errors.environment(self);
        errors.0
    }
}

/// Whether a text can name a job or a workspace.
pub fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(allowed)
}

/// Whether a text names a stored code snapshot: `sha256:` and 64 hex digits.
pub fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

struct Errors(Vec<FieldError>);

impl Errors {
    fn add(&mut self, field: impl Into<String>, message: String) {
        self.0.push(FieldError::new(field, message));
    }

    fn name(&mut self, field: &str, name: &str) {
        if name.len() > LONGEST_NAME {
            self.add(
                field,
                format!("is {} characters long; at most {LONGEST_NAME} are taken", name.chars().count()),
            );
        } else if !is_name(name) {
            let message = "must start with a letter or digit and hold only letters, digits, `.`, `_` and `-`";
            self.add(field, message.to_owned());
        }
    }

    fn range(&mut self, field: &str, value: u32, least: u32, most: u32) {
        if value < least || value > most {
            self.add(field, format!("is {value}; it must be between {least} and {most}"));
        }
    }

    fn text(&mut self, field: &str, text: &str, longest: usize) {
        if text.contains('\0') {
            self.add(field, "holds a NUL character, which no program can be given".to_owned());
        }
        if text.len() > longest {
            self.add(field, format!("is {} bytes long; at most {longest} are taken", text.len()));
        }
    }

    /// Paths below the job's own folder: they may not reach out of it.
    fn relative_path(&mut self, field: &str, path: &str) {
        self.text(field, path, 4096);
        let escapes = path.split('/').any(|part| part == "..");
        if path.is_empty() || path.starts_with('/') || escapes {
            let message = "must be a path below the job's folder, such as `ckpt`: not absolute, without `..`";
            self.add(field, message.to_owned());
        }
    }

    fn variable(&mut self, field: &str, name: &str) {
        if !is_variable_name(name) {
            self.add(field, format!("`{}` is not a variable name: letters, digits and `_`", shown(name)));
        } else if name.starts_with("DANLU_") {
            self.add(
                format!("{field}.{name}"),
                "names starting with `DANLU_` are set by Danlu itself".to_owned(),
            );
        } else if is_set_by_grant(name) {
            let message =
                "says which devices the job was given, which Danlu does; ask for devices with `devices`";
            self.add(format!("{field}.{name}"), message.to_owned());
        }
    }

    fn environment(&mut self, spec: &JobSpec) {
        let lists = [
            ("env", spec.env.len()),
            ("secrets", spec.secrets.len()),
            ("labels", spec.labels.len()),
            ("parameters", spec.parameters.len()),
        ];
        for (field, count) in lists {
            if count > MOST_ENTRIES {
                self.add(field, format!("has {count} entries; at most {MOST_ENTRIES} are taken"));
                return;
            }
        }
        for (name, secret) in &spec.secrets {
            self.variable("secrets", name);
            let field = format!("secrets.{}", shown(name));
            if spec.env.contains_key(name) {
                self.add(&field, "is in `env` as well; which of the two is meant?".to_owned());
            }
            if !is_name(&secret.name) {
                let message = format!(
                    "invalid secret name `{}`: use letters, digits, `.`, `_` and `-`",
                    shown(&secret.name)
                );
                self.add(&field, message);
            }
        }
        for (name, value) in &spec.env {
            self.variable("env", name);
            self.text(&format!("env.{}", shown(name)), value, LONGEST_VALUE);
        }
        for (name, value) in &spec.labels {
            self.text(&format!("labels.{}", shown(name)), name, LONGEST_NAME);
            self.text(&format!("labels.{}", shown(name)), value, 1024);
        }
        for parameter in &spec.parameters {
            let field = format!("parameters.{}", shown(&parameter.name));
            let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            if parameter.name.is_empty() || !parameter.name.chars().all(allowed) {
                self.add(&field, "parameter names hold letters, digits, `_`, `-` and `.`".to_owned());
            }
            self.text(&field, &parameter.value, LONGEST_VALUE);
        }
    }
}

fn is_variable_name(name: &str) -> bool {
    name.len() <= 256
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn shown(name: &str) -> String {
    name.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(yaml: &str) -> JobSpec {
        serde_saphyr::from_str(yaml).unwrap()
    }

    fn complaints(yaml: &str) -> String {
        let lines: Vec<String> = read(yaml)
            .check()
            .into_iter()
            .map(|error| format!("{}: {}", error.field, error.message))
            .collect();
        lines.join("\n")
    }

    #[test]
    fn the_smallest_job_file_is_one_line() {
        let spec = read("command: python train.py");
        assert_eq!(spec, JobSpec::of_command("python train.py"));
        assert_eq!(spec.check(), vec![]);
    }

    #[test]
    fn everything_wrong_is_said_at_once() {
        insta::assert_snapshot!(complaints(
            "name: ../etc\nworkers: 0\ncommand: ''\npriority: 12\ncheckpoint: ../../root\nenv: {DANLU_RANK: 1, 'a b': c}\ncode: main"
        ), @r"
        name: must start with a letter or digit and hold only letters, digits, `.`, `_` and `-`
        workers: is 0; it must be between 1 and 65536
        command: is empty; write what to run, such as `python train.py`
        priority: is 12; it must be between 1 and 9
        checkpoint: must be a path below the job's folder, such as `ckpt`: not absolute, without `..`
        code: is not the digest of an uploaded snapshot (`sha256:` and 64 hex digits); `danlu submit` uploads a folder and fills this in
        env.DANLU_RANK: names starting with `DANLU_` are set by Danlu itself
        env: `a b` is not a variable name: letters, digits and `_`
        ");
    }

    #[test]
    fn a_job_does_not_say_which_devices_it_was_given() {
        insta::assert_snapshot!(complaints(
            "command: x\nenv: {CUDA_VISIBLE_DEVICES: 0, ASCEND_RT_VISIBLE_DEVICES: 1, CUDA_HOME: /c}\nsecrets: {NVIDIA_VISIBLE_DEVICES: all}"
        ), @r"
        secrets.NVIDIA_VISIBLE_DEVICES: says which devices the job was given, which Danlu does; ask for devices with `devices`
        env.ASCEND_RT_VISIBLE_DEVICES: says which devices the job was given, which Danlu does; ask for devices with `devices`
        env.CUDA_VISIBLE_DEVICES: says which devices the job was given, which Danlu does; ask for devices with `devices`
        ");
    }

    #[test]
    fn a_share_is_not_smaller_than_what_can_be_shared() {
        insta::assert_snapshot!(complaints("command: x\ndevices: {kind: nvidia, count: 0.001}"), @"devices.count: is 0.001; the least share of a device is 0.05");
        assert_eq!(complaints("command: x\ndevices: {kind: nvidia, count: 0.05}"), "");
        for wrong in ["1e-7", "0.0001", "1.5", "-1"] {
            let text = format!("command: x\ndevices: {{kind: nvidia, count: {wrong}}}");
            let refused = serde_saphyr::from_str::<JobSpec>(&text).unwrap_err().to_string();
            assert!(refused.contains("a share of one such as `0.5`"), "{wrong}: {refused}");
        }
    }

    #[test]
    fn parameters_come_as_a_map_or_as_modelarts_lists() {
        let as_map = read("command: run\nparameters: {epoch_size: 5, name: 'a b'}");
        let as_list =
            read("command: run\nparameters: [{label: epoch_size, value: 5}, {name: name, value: a b}]");
        assert_eq!(as_map, as_list);
        assert_eq!(as_map.full_command(), "run --epoch_size=5 --name='a b'");
    }

    #[test]
    fn ranks_follow_the_framework_unless_said() {
        let devices = "devices: {kind: ascend, count: 8}";
        let ranks = |yaml: &str, devices| read(yaml).ranks_per_worker(devices);
        assert_eq!(ranks(&format!("command: x\n{devices}"), 8), 1);
        assert_eq!(ranks(&format!("command: x\nframework: pytorch\n{devices}"), 8), 8);
        assert_eq!(ranks(&format!("command: x\nframework: pytorch\nranks: per_worker\n{devices}"), 8), 1);
        assert_eq!(ranks("command: x\nranks: 3", 0), 3);
    }
}
