//! Secrets of workspaces: encrypted in the database, listed by name, decrypted only on their way to a worker.

use danlu_core::Job;
use danlu_core::authorization::Action;
use danlu_core::launch::GivenSecret;
use danlu_store::{DirectoryRow, StoredSecret};
use danlu_types::api::{NewSecret, SecretView};
use danlu_types::spec::is_name;
use danlu_types::{FieldError, JobSpec, Problem, ProblemCode};
use jiff::Timestamp;

use super::{Caller, Deed, Directory};
use crate::app::{App, store_problem};
use crate::encryption::EncryptionError;

const LONGEST_VALUE: usize = 64 * 1024;
/// More would be a mistake in a script.
const MOST_SECRETS: usize = 200;

/// Why a job cannot have its secrets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    #[error("the workspace `{workspace}` has no secret `{name}`")]
    Missing { workspace: String, name: String },
    #[error(transparent)]
    Sealing(#[from] EncryptionError),
    #[error("secret `{0}` is not text")]
    NoText(String),
}

impl Directory {
    fn has_secret(&self, workspace: &str, name: &str) -> bool {
        self.register().secrets.contains_key(&(workspace.to_owned(), name.to_owned()))
    }

    fn secrets(&self, workspace: &str) -> Vec<SecretView> {
        let register = self.register();
        let view = |(name, kept): (&str, &StoredSecret)| SecretView {
            name: name.to_owned(),
            changed_at: kept.changed_at,
            changed_by: kept.changed_by.clone(),
        };
        register.secrets_of(workspace).map(view).collect()
    }

    /// The secrets that a job asks for, with their values.
    pub(crate) fn given_secrets(&self, job: &Job) -> Result<Vec<GivenSecret>, SecretError> {
        let workspace = &job.spec.workspace;
        let open = |(variable, asked): (&String, &danlu_types::SecretUse)| {
            let key = (workspace.clone(), asked.name.clone());
            let sealed = self.register().secrets.get(&key).map(|kept| kept.sealed.clone());
            let missing = || SecretError::Missing { workspace: workspace.clone(), name: asked.name.clone() };
            let value =
                self.encryptor.decrypt(&context(workspace, &asked.name), &sealed.ok_or_else(missing)?)?;
            let value = String::from_utf8(value).map_err(|_| SecretError::NoText(asked.name.clone()))?;
            Ok(GivenSecret { variable: variable.clone(), form: asked.form, value })
        };
        job.spec.secrets.iter().map(open).collect()
    }

    /// What the audit tells of a workspace before it was deleted, with the names of the secrets that go with it.
    pub(super) fn with_secrets(
        &self,
        mut before: Option<serde_json::Value>,
        workspace: &str,
    ) -> Option<serde_json::Value> {
        let names: Vec<String> =
            self.register().secrets_of(workspace).map(|(name, _)| name.to_owned()).collect();
        if let Some(before) = before.as_mut().filter(|_| !names.is_empty()) {
            before["secrets"] = serde_json::json!(names);
        }
        before
    }

    async fn write_secret(
        &self,
        caller: &Caller,
        workspace: &str,
        name: &str,
        kept: Option<StoredSecret>,
    ) -> Result<(), Problem> {
        let said = |is: bool| is.then(|| serde_json::json!({ "secret": name }));
        let by = caller.name();
        let deed = Deed {
            by: &by,
            from: caller.from,
            action: if kept.is_some() { "secret.set" } else { "secret.delete" },
            subject: workspace.to_owned(),
            before: said(self.has_secret(workspace, name)),
            after: said(kept.is_some()),
        };
        let row = DirectoryRow::Secret(workspace.to_owned(), name.to_owned(), kept);
        self.write(vec![row], deed).await.map_err(store_problem)
    }
}

/// What a seal is bound to: moved to another name, it does not open.
fn context(workspace: &str, name: &str) -> String {
    format!("secret {workspace}/{name}")
}

impl App {
    pub(crate) fn secrets_list(&self, caller: &Caller, workspace: &str) -> Result<Vec<SecretView>, Problem> {
        self.directory.require_of_workspace(caller, workspace, Action::SeeSecrets)?;
        Ok(self.directory.secrets(workspace))
    }

    pub(crate) async fn secret_set(
        &self,
        caller: &Caller,
        workspace: &str,
        name: &str,
        new: NewSecret,
    ) -> Result<(), Problem> {
        self.directory.require_of_workspace(caller, workspace, Action::ChangeSecrets)?;
        if !is_name(name) {
            let message = "must have 1 to 63 letters, digits, `.`, `_` and `-`";
            return Err(Problem::invalid_fields(vec![FieldError::new("secret", message)]));
        }
        if new.value.is_empty() || new.value.len() > LONGEST_VALUE || new.value.contains('\0') {
            let message = format!("must have 1 to {LONGEST_VALUE} bytes, none of them zero");
            return Err(Problem::invalid_fields(vec![FieldError::new("value", message)]));
        }
        let _one_at_a_time = self.directory.changing.lock().await;
        if !self.directory.has_secret(workspace, name)
            && self.directory.secrets(workspace).len() >= MOST_SECRETS
        {
            let detail = format!("the workspace `{workspace}` has {MOST_SECRETS} secrets already");
            return Err(Problem::new(ProblemCode::WrongState, detail).with_hint("delete those not in use"));
        }
        let sealed = self.directory.encryptor.encrypt(&context(workspace, name), new.value.as_bytes());
        let kept = StoredSecret { sealed, changed_at: Timestamp::now(), changed_by: caller.name() };
        self.directory.write_secret(caller, workspace, name, Some(kept)).await
    }

    pub(crate) async fn secret_delete(
        &self,
        caller: &Caller,
        workspace: &str,
        name: &str,
    ) -> Result<(), Problem> {
        self.directory.require_of_workspace(caller, workspace, Action::ChangeSecrets)?;
        let _one_at_a_time = self.directory.changing.lock().await;
        if !self.directory.has_secret(workspace, name) {
            let name: String = name.chars().take(63).collect();
            let detail = format!("the workspace `{workspace}` has no secret `{name}`");
            return Err(Problem::new(ProblemCode::NotFound, detail));
        }
        self.directory.write_secret(caller, workspace, name, None).await
    }

    /// Refuses a job whose workspace lacks what it asks for. Only that one is looked at: secrets of others do not exist.
    pub(crate) fn check_secrets(&self, spec: &JobSpec) -> Result<(), Problem> {
        let missing =
            spec.secrets.iter().filter(|(_, asked)| !self.directory.has_secret(&spec.workspace, &asked.name));
        let complain = |(variable, asked): (&String, &danlu_types::SecretUse)| {
            let message = format!("the workspace `{}` has no secret `{}`", spec.workspace, asked.name);
            FieldError::new(format!("secrets.{variable}"), message)
        };
        let errors: Vec<FieldError> = missing.map(complain).collect();
        if errors.is_empty() {
            return Ok(());
        }
        let hint = format!("its owner sets one with `danlu secrets set NAME --workspace {}`", spec.workspace);
        Err(Problem::invalid_fields(errors).with_hint(hint))
    }
}
