//! Files of other platforms, known by their form, so that the answer says what they are and what to write instead.
//!
//! Only forms that no job file can have are known here: whatever could be meant as one is read as one.

use crate::tree::{SourceTree, SourceValue};

/// What a file is, and what to do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    pub what: &'static str,
    pub hint: &'static str,
}

const DLC: Foreign = Foreign {
    what: "a parameter file of DLC (`name=value` lines)",
    hint: "write a job file: `worker_count=2` is `workers: 2`, `worker_gpu=8` is `devices: { kind: nvidia, count: 8 }`, \
           `worker_cpu=4` is `cpus: 4`, `worker_memory=4` is `memory: 4Gi`, `worker_shared_memory=4` is `shared_memory: 4Gi`, \
           `command=…` is `command: …`",
};
const MODELARTS: Foreign = Foreign {
    what: "a Python configuration for ModelArts",
    hint: "write a job file: the boot file is `command: python train.py`, the code folder `code: .`, its hyperparameters \
           `parameters: [{ label: …, value: … }]` as they are, the number of nodes `workers:`, \
           the flavor `devices: { kind: ascend, count: 8 }`",
};
const SKYPILOT: Foreign = Foreign {
    what: "a SkyPilot task",
    hint: "write a job file: `run:` is `command:`, `num_nodes: 2` is `workers: 2`, `workdir: .` is `code: .`, \
           `resources: { accelerators: A100:8 }` is `devices: { kind: nvidia, model: \"A100*\", count: 8 }`, \
           `envs:` is `env:`, and `setup:` stays",
};
const DSTACK: Foreign = Foreign {
    what: "a dstack configuration",
    hint: "write a job file: the lines of `commands:` are one `command: |`, `nodes: 2` is `workers: 2`, \
           `resources: { gpu: A100:8 }` is `devices: { kind: nvidia, model: \"A100*\", count: 8 }`, \
           `env:` is a map of names and values",
};
const KUBERNETES: Foreign = Foreign {
    what: "a Kubernetes manifest",
    hint: "write a job file: the container's `command` and `args` are `command:`, its limits `cpus:`, `memory:` and \
           `devices:`, the number of replicas `workers:`",
};
const PBS: Foreign = Foreign {
    what: "a batch script for PBS or LSF",
    hint: "only Slurm's `#SBATCH` lines are read; write a job file, or give what the lines say as flags: \
           `danlu submit --workers 2 --devices nvidia:8 -- bash script.sh`",
};
const PYTHON: Foreign = Foreign {
    what: "a Python program, not a job file",
    hint: "run it as a command: `danlu run -- python FILE`",
};

/// What the text is, whether or not it can be read as YAML.
pub(super) fn by_text(name: &str, source: &str) -> Option<Foreign> {
    let lines = || source.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    if source.lines().any(|line| line.starts_with("#PBS ") || line.starts_with("#BSUB ")) {
        return Some(PBS);
    }
    let is_assignment = |line: &str| {
        let name = line.split_once('=').map(|(name, _)| name.trim());
        name.is_some_and(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        })
    };
    if lines().any(|line| line.starts_with("worker_") || line.starts_with("kind="))
        && lines().all(|line| is_assignment(line) || !line.contains(": "))
        && lines().filter(|line| is_assignment(line)).count() > 1
    {
        return Some(DLC);
    }
    let is_python = |line: &str| {
        line.starts_with("import ")
            || line.starts_with("from ") && line.contains(" import ")
            || line.starts_with("def ")
            || line.starts_with("class ")
    };
    if lines().any(is_python) {
        let modelarts = source.contains("modelarts") || name.contains("modelarts");
        return Some(if modelarts { MODELARTS } else { PYTHON });
    }
    None
}

/// What a map is by its fields.
pub(super) fn by_fields(tree: &SourceTree) -> Option<Foreign> {
    let SourceValue::Map(_) = &tree.content else { return None };
    let has = |field: &str| tree.get(field).is_some();
    if has("apiVersion") && has("kind") {
        return Some(KUBERNETES);
    }
    if has("run") && ["resources", "num_nodes", "workdir", "file_mounts", "envs"].into_iter().any(has) {
        return Some(SKYPILOT);
    }
    if has("type") && ["commands", "ide", "nodes", "resources"].into_iter().any(has) {
        return Some(DSTACK);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    #[test]
    fn files_of_other_platforms_are_known_by_their_form() {
        let dlc = "name=yourtaskname\nkind=PyTorchJob\nworker_count=1\nworker_memory=4\ncommand=cd /x && python a.py\n";
        assert_eq!(by_text("sample_job.params", dlc), Some(DLC));
        let modelarts = "from modelarts.session import Session\nconfig = {\n  'a': 1\n}\n";
        assert_eq!(by_text("train_config.py", modelarts), Some(MODELARTS));
        assert_eq!(by_text("modelarts_config.py", "import os\nx = {1: 2}\n"), Some(MODELARTS));
        assert_eq!(by_text("train.py", "import torch\n"), Some(PYTHON));
        assert_eq!(by_text("job.sh", "#PBS -l nodes=2\npython x.py\n"), Some(PBS));
        for (text, expected) in [
            ("resources: {accelerators: A100:8}\nrun: python x.py\n", Some(SKYPILOT)),
            ("type: task\ncommands: [python x.py]\n", Some(DSTACK)),
            ("apiVersion: batch/v1\nkind: Job\n", Some(KUBERNETES)),
            ("name: a\ncommand: python x.py\n", None),
        ] {
            assert_eq!(by_fields(&yaml::read(text).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn job_files_are_not_taken_for_others() {
        for text in [
            "name: a\ncommand: |\n  import=1 worker_count=2 python x.py\n",
            "{\"name\": \"a\", \"command\": \"kind=x python a.py\"}",
            "# from here import nothing\nname: x\ncommand: worker_x=1 ./run\n",
        ] {
            assert_eq!(by_text("job.yaml", text), None, "{text}");
        }
    }
}
