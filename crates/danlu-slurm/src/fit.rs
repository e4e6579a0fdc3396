//! What Slurm can hand out of what a job asks for.

use danlu_types::{Compat, Cpus, DeviceCount, FieldError, JobSpec};

/// The job with as many CPUs as Slurm will take for it, so that Danlu counts the same. Slurm hands out devices only whole.
pub fn fit(mut spec: JobSpec) -> Result<JobSpec, FieldError> {
    let is_part = |count: DeviceCount| !count.milli().is_multiple_of(1000);
    if let Some(request) = spec.alternatives().iter().find(|request| is_part(request.count)) {
        let message =
            format!("asks for {} of a device; Slurm hands out whole ones: use `count: 1`", request.count);
        return Err(FieldError::new("devices", message));
    }
    spec.cpus = Cpus { milli: spec.cpus.milli.div_ceil(1000).saturating_mul(1000) };
    Ok(spec)
}

/// What cannot run where nodes and server share no disk: tasks of a batch script meet in a folder that all its nodes see.
pub fn check_unshared(spec: &JobSpec) -> Result<(), FieldError> {
    if spec.workers <= 1 || !spec.compat.contains(&Compat::Slurm) {
        return Ok(());
    }
    let message = format!(
        "is {}: a batch script runs on several nodes only where they share a disk, and these share none (`shared: false`); \
         ask for one node, or start the ranks without a script: `danlu submit --workers {} --framework pytorch -- python train.py`",
        spec.workers, spec.workers
    );
    Err(FieldError::new("workers", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> JobSpec {
        serde_saphyr::from_str(&format!("command: x\n{text}")).expect("a job")
    }

    #[test]
    fn cpus_are_whole_and_at_least_one() {
        let cpus = |text: &str| fit(spec(text)).unwrap().cpus.to_string();
        assert_eq!([cpus("cpus: 0.01"), cpus("cpus: 2"), cpus("cpus: 2.5")], ["1", "2", "3"]);
    }

    #[test]
    fn devices_are_whole() {
        let error = fit(spec("devices: {kind: nvidia, count: 0.5}")).unwrap_err();
        insta::assert_snapshot!(error.message, @"asks for 0.5 of a device; Slurm hands out whole ones: use `count: 1`");
        assert_eq!(error.field, "devices");
        assert!(fit(spec("devices: {kind: nvidia, count: 2}")).is_ok());
        assert!(fit(spec("")).is_ok(), "no devices at all");
    }

    #[test]
    fn scripts_of_several_nodes_need_a_shared_disk() {
        let refusal = check_unshared(&spec("workers: 2\ncompat: [slurm]")).unwrap_err();
        assert!(refusal.message.contains("share a disk"), "{refusal:?}");
        assert!(check_unshared(&spec("workers: 1\ncompat: [slurm]")).is_ok());
        assert!(check_unshared(&spec("workers: 2")).is_ok());
    }
}
