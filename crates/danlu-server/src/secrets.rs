//! Secrets of workspaces: sealed in the store, listed by name, opened only on their way to a worker.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::bail;
use danlu_core::Job;
use danlu_core::authorization::Action;
use danlu_core::launch::GivenSecret;
use danlu_store::{DirectoryChange, DirectoryRow, Store, StoreError};
use danlu_types::api::{AuditEntry, NewSecret, SecretView};
use danlu_types::spec::is_name;
use danlu_types::{FieldError, JobSpec, Problem, ProblemCode};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::accounts::Caller;
use crate::app::{App, store_problem};
use crate::encryption::{EncryptionError, Encryptor};

/// The kind of our rows in the directory.
pub(crate) const SECRET: &str = "secret";

const LONGEST_VALUE: usize = 64 * 1024;
/// More would be a mistake in a script.
const MOST_SECRETS: usize = 200;

/// What is kept of a secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredSecret {
    sealed: String,
    changed_at: Timestamp,
    changed_by: String,
}

/// By workspace and name.
type ByName = BTreeMap<(String, String), StoredSecret>;

#[derive(Debug)]
pub(crate) struct SecretTable {
    store: Arc<dyn Store>,
    encryptor: Arc<Encryptor>,
    kept: Mutex<ByName>,
    changing: tokio::sync::Mutex<()>,
}

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

impl SecretTable {
    pub(crate) async fn open(store: Arc<dyn Store>, encryptor: Arc<Encryptor>) -> anyhow::Result<Self> {
        let kept = match by_name(&store.directory().await?) {
            Ok(kept) => kept,
            Err(key) => bail!("the secret `{key}` cannot be read from the database"),
        };
        Ok(SecretTable { store, encryptor, kept: Mutex::new(kept), changing: tokio::sync::Mutex::default() })
    }

    /// Takes what the database has for what is so, after a change that it may have taken without saying so.
    pub(crate) async fn read_again(&self) -> Result<(), StoreError> {
        let _changing = self.changing.lock().await;
        match by_name(&self.store.directory().await?) {
            Ok(kept) => *self.kept() = kept,
            Err(key) => tracing::error!("the secret `{key}` cannot be read from the database"),
        }
        Ok(())
    }

    fn has(&self, workspace: &str, name: &str) -> bool {
        self.kept().contains_key(&(workspace.to_owned(), name.to_owned()))
    }

    fn list(&self, workspace: &str) -> Vec<SecretView> {
        let kept = self.kept();
        let own = kept.iter().filter(|((of, _), _)| of == workspace);
        let view = |((_, name), kept): (&(String, String), &StoredSecret)| SecretView {
            name: name.clone(),
            changed_at: kept.changed_at,
            changed_by: kept.changed_by.clone(),
        };
        own.map(view).collect()
    }

    /// The secrets that a job asks for, with their values.
    pub(crate) fn given(&self, job: &Job) -> Result<Vec<GivenSecret>, SecretError> {
        let workspace = &job.spec.workspace;
        let open = |(variable, asked): (&String, &danlu_types::SecretUse)| {
            let key = (workspace.clone(), asked.name.clone());
            let sealed = self.kept().get(&key).map(|kept| kept.sealed.clone());
            let missing = || SecretError::Missing { workspace: workspace.clone(), name: asked.name.clone() };
            let value =
                self.encryptor.decrypt(&context(workspace, &asked.name), &sealed.ok_or_else(missing)?)?;
            let value = String::from_utf8(value).map_err(|_| SecretError::NoText(asked.name.clone()))?;
            Ok(GivenSecret { variable: variable.clone(), form: asked.form, value })
        };
        job.spec.secrets.iter().map(open).collect()
    }

    /// Writes a change with its trail, and shows it once it is durable.
    async fn write(
        &self,
        caller: &Caller,
        workspace: &str,
        name: &str,
        kept: Option<StoredSecret>,
    ) -> Result<(), StoreError> {
        let value = kept.as_ref().map(|kept| serde_json::to_string(kept).expect("plain values"));
        let before = self.has(workspace, name);
        let said = |is: bool| is.then(|| serde_json::json!({ "secret": name }));
        let audit = AuditEntry {
            number: 0,
            at: Timestamp::now(),
            by: caller.name(),
            from: caller.from.to_string(),
            action: if kept.is_some() { "secret.set" } else { "secret.delete" }.to_owned(),
            subject: workspace.to_owned(),
            before: said(before),
            after: said(kept.is_some()),
            seal: String::new(),
        };
        let row = DirectoryRow { kind: SECRET.to_owned(), key: format!("{workspace}/{name}"), value };
        self.store.directory_change(&DirectoryChange { rows: vec![row], audit }).await?;
        let key = (workspace.to_owned(), name.to_owned());
        match kept {
            Some(kept) => self.kept().insert(key, kept),
            None => self.kept().remove(&key),
        };
        Ok(())
    }

    fn kept(&self) -> MutexGuard<'_, ByName> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The secrets among the rows of the directory, or the key of one that cannot be read.
fn by_name(rows: &[DirectoryRow]) -> Result<ByName, String> {
    let mut kept = ByName::new();
    for row in rows.iter().filter(|row| row.kind == SECRET) {
        let value = row.value.as_deref().and_then(|value| serde_json::from_str(value).ok());
        let (Some(value), Some((workspace, name))) = (value, row.key.split_once('/')) else {
            return Err(row.key.clone());
        };
        kept.insert((workspace.to_owned(), name.to_owned()), value);
    }
    Ok(kept)
}

/// What a seal is bound to: moved to another name, it does not open.
fn context(workspace: &str, name: &str) -> String {
    format!("secret {workspace}/{name}")
}

impl App {
    pub(crate) fn secrets_list(&self, caller: &Caller, workspace: &str) -> Result<Vec<SecretView>, Problem> {
        self.directory.require_of_workspace(caller, workspace, Action::SeeSecrets)?;
        Ok(self.secrets.list(workspace))
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
        let _one_at_a_time = self.secrets.changing.lock().await;
        if !self.secrets.has(workspace, name) && self.secrets.list(workspace).len() >= MOST_SECRETS {
            let detail = format!("the workspace `{workspace}` has {MOST_SECRETS} secrets already");
            return Err(Problem::new(ProblemCode::WrongState, detail).with_hint("delete those not in use"));
        }
        let sealed = self.secrets.encryptor.encrypt(&context(workspace, name), new.value.as_bytes());
        let kept = StoredSecret { sealed, changed_at: Timestamp::now(), changed_by: caller.name() };
        self.secrets.write(caller, workspace, name, Some(kept)).await.map_err(store_problem)
    }

    pub(crate) async fn secret_delete(
        &self,
        caller: &Caller,
        workspace: &str,
        name: &str,
    ) -> Result<(), Problem> {
        self.directory.require_of_workspace(caller, workspace, Action::ChangeSecrets)?;
        let _one_at_a_time = self.secrets.changing.lock().await;
        if !self.secrets.has(workspace, name) {
            let name: String = name.chars().take(63).collect();
            let detail = format!("the workspace `{workspace}` has no secret `{name}`");
            return Err(Problem::new(ProblemCode::NotFound, detail));
        }
        self.secrets.write(caller, workspace, name, None).await.map_err(store_problem)
    }

    /// With a workspace goes what is secret in it: the name may be another's one day.
    pub(crate) async fn secrets_forget(&self, caller: &Caller, workspace: &str) -> Result<(), Problem> {
        let _one_at_a_time = self.secrets.changing.lock().await;
        for secret in self.secrets.list(workspace) {
            self.secrets.write(caller, workspace, &secret.name, None).await.map_err(store_problem)?;
        }
        Ok(())
    }

    /// Refuses a job whose workspace lacks what it asks for. Only that one is looked at: secrets of others do not exist.
    pub(crate) fn check_secrets(&self, spec: &JobSpec) -> Result<(), Problem> {
        let missing =
            spec.secrets.iter().filter(|(_, asked)| !self.secrets.has(&spec.workspace, &asked.name));
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
