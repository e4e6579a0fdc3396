//! Jobs whose code is migrated to Ascend NPU on its way: which devices they then ask for, and what is said of it.

use clap::Args;
use danlu_client::Client;
use danlu_types::api::{MigrationEntry, MigrationRequest, MigrationView};
use danlu_types::{DeviceCount, DeviceKind, DeviceRequest, JobSpec};

use crate::failure::{CliError, USAGE};
use crate::output;

/// Under which a migrated job keeps the digest of the code that it was made from.
pub(crate) const LABEL: &str = "migrated-from";

#[derive(Debug, Args)]
pub(crate) struct MigrationFlags {
    /// Migrate the code from CUDA to Ascend NPUs before the job runs; the report is in `danlu-migration`
    #[arg(long)]
    migrate: bool,
    /// With `--migrate`: PyTorch version to check API support against, e.g. `2.1.0`
    #[arg(long, value_name = "VERSION", requires = "migrate")]
    migrate_version: Option<String>,
    /// With `--migrate`: entry script to convert to one process per device, e.g. `train.py`
    #[arg(long, value_name = "FILE", requires = "migrate")]
    migrate_distributed: Option<String>,
    /// With `--migrate-distributed`: variable that holds the model
    #[arg(long, value_name = "NAME", default_value = "model", requires = "migrate_distributed")]
    migrate_model: String,
}

impl MigrationFlags {
    /// The job as it can run migrated code, or why it cannot.
    pub(crate) fn on_ascend(&self, spec: JobSpec) -> Result<JobSpec, CliError> {
        if !self.migrate {
            return Ok(spec);
        }
        if spec.code.is_none() {
            return Err(CliError::new("no code to migrate")
                .with_code(USAGE)
                .hint("name its folder with `--code`, or in the job file: `code: .`"));
        }
        on_ascend(spec)
    }

    /// Has the server migrate `spec.code`, and puts the migrated copy in its place.
    pub(crate) async fn migrate(&self, client: &Client, spec: &mut JobSpec) -> Result<(), CliError> {
        let Some(code) = spec.code.clone().filter(|_| self.migrate) else { return Ok(()) };
        let distributed = self.migrate_distributed.clone();
        let request = MigrationRequest {
            code: code.clone(),
            torch: self.migrate_version.clone(),
            distributed: distributed.map(|main| MigrationEntry { main, model: self.migrate_model.clone() }),
            ..MigrationRequest::default()
        };
        let done = client.code_migrate(&request).await?;
        output::say(output::printable(&sentence(&done)));
        spec.code = Some(done.code);
        spec.labels.insert(LABEL.to_owned(), code);
        Ok(())
    }
}

/// Migrated code runs on nothing else, so what is left open is Ascend, and other devices are no choice any more.
fn on_ascend(mut spec: JobSpec) -> Result<JobSpec, CliError> {
    let is_other = |request: &DeviceRequest| request.kind.is_some_and(|kind| kind != DeviceKind::Ascend);
    if spec.alternatives().iter().all(is_other) {
        let asked: Vec<&str> =
            spec.alternatives().iter().filter_map(|one| one.kind).map(DeviceKind::label).collect();
        return Err(CliError::new(format!(
            "migrated code runs on Ascend devices, and the job asks for {} only",
            asked.join(" or ")
        ))
        .with_code(USAGE)
        .hint("ask for Ascend devices (`--devices ascend:1`), or leave `--migrate` out"));
    }
    spec.any_of.retain(|request| !is_other(request));
    let requests =
        if spec.any_of.is_empty() { std::slice::from_mut(&mut spec.devices) } else { &mut spec.any_of[..] };
    for request in requests {
        request.kind = Some(DeviceKind::Ascend);
        if request.count.is_none() {
            request.count = DeviceCount::whole(1);
        }
    }
    Ok(spec)
}

fn sentence(done: &MigrationView) -> String {
    let summary = &done.summary;
    let changes = summary.edits.safe + summary.edits.likely;
    let open = summary.findings.broken + summary.findings.unsupported + summary.findings.needs_person;
    let left = match open {
        0 => String::new(),
        1 => "; one place is left to you: see `danlu-migration/report.html` in its folder".to_owned(),
        _ => format!("; {open} places are left to you: see `danlu-migration/report.html` in its folder"),
    };
    format!(
        "migrated the code to Ascend NPU: {changes} changes in {} of {} files{left}",
        summary.changed_files, summary.files
    )
}

#[cfg(test)]
mod tests {
    use danlu_types::JobSpec;

    use super::on_ascend;

    fn devices(job: &str) -> String {
        let mut spec: JobSpec = serde_json::from_str(job).unwrap();
        spec.command = "true".to_owned();
        match on_ascend(spec) {
            Ok(spec) => spec
                .alternatives()
                .iter()
                .map(|request| serde_json::to_string(request).unwrap())
                .collect::<Vec<_>>()
                .join(" or "),
            Err(failure) => failure.plain_text(),
        }
    }

    #[test]
    fn migrated_code_asks_for_ascend_devices() {
        let cases = [
            r#"{"command": "x"}"#,
            r#"{"command": "x", "devices": {"count": 4}}"#,
            r#"{"command": "x", "devices": {"kind": "ascend", "model": "910B*", "count": 8}}"#,
            r#"{"command": "x", "any_of": [{"kind": "nvidia", "count": 8}, {"count": 16}]}"#,
            r#"{"command": "x", "devices": {"kind": "nvidia", "count": 8}}"#,
        ];
        insta::assert_snapshot!(cases.map(devices).join("\n"), @r#"
        {"kind":"ascend","count":1}
        {"kind":"ascend","count":4}
        {"kind":"ascend","model":"910B*","count":8}
        {"kind":"ascend","count":16}
        error: migrated code runs on Ascend devices, and the job asks for NVIDIA only

        hint: ask for Ascend devices (`--devices ascend:1`), or leave `--migrate` out
        "#);
    }
}
