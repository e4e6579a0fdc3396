//! Keys of accounts: for SSH, and for S3.

use danlu_core::authorization::Action;
use danlu_core::ssh_key::SshKey;
use danlu_store::DirectoryRow;
use danlu_types::account::AccountName;
use danlu_types::api::{MadeS3Key, NewS3Key, NewSshKey, S3KeyView, SshKeyView};
use danlu_types::{FieldError, Problem, ProblemCode};
use jiff::Timestamp;
use rand::Rng as _;

use super::credentials::{S3KeyRecord, SshKeyRecord, s3_key_row, s3_key_view, ssh_key_row, ssh_key_view};
use super::manage::{check_text, new_id, require_of_account};
use super::{Caller, Deed, Directory, Visitor, json};
use crate::app::store_problem;

/// More would be a mistake in a script.
const MOST_KEYS: usize = 50;
/// As long as those of AWS, so that every tool takes them.
const ACCESS_KEY_LENGTH: usize = 20;
const SECRET_KEY_LENGTH: usize = 40;

impl Directory {
    pub(crate) fn ssh_keys(&self, caller: &Caller, name: &AccountName) -> Result<Vec<SshKeyView>, Problem> {
        require_of_account(caller, name, Action::SeeAccount)?;
        self.view(name)?;
        let register = self.register();
        let own = register.credentials.ssh_keys.iter().filter(|(_, key)| key.account == *name);
        let mut keys: Vec<_> = own.map(|(fingerprint, key)| ssh_key_view(fingerprint, key)).collect();
        keys.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Ok(keys)
    }

    pub(crate) async fn add_ssh_key(
        &self,
        caller: &Caller,
        name: &AccountName,
        new: NewSshKey,
        visitor: &Visitor,
    ) -> Result<SshKeyView, Problem> {
        require_of_account(caller, name, Action::ChangeAccount)?;
        caller.require_in_person()?;
        let wrong = |message: String| Problem::invalid_fields(vec![FieldError::new("key", message)]);
        let key = SshKey::read(&new.key).map_err(|error| wrong(error.to_string()))?;
        let called = new.name.filter(|name| !name.is_empty()).unwrap_or_else(|| key.comment.clone());
        check_text("name", Some(&called))?;
        let (_one_at_a_time, mut rows) = self.prove_to_outlast(caller, new.proof, visitor).await?;
        self.view(name)?;
        let fingerprint = key.fingerprint();
        {
            let register = self.register();
            let keys = &register.credentials.ssh_keys;
            if keys.contains_key(&fingerprint) {
                let detail = "this key belongs to an account already";
                return Err(Problem::new(ProblemCode::WrongState, detail)
                    .with_hint("a key identifies one account: make another with `ssh-keygen -t ed25519`"));
            }
            at_most(keys.values().filter(|key| key.account == *name).count(), name)?;
        }
        let record = SshKeyRecord {
            id: new_id(),
            account: name.clone(),
            name: called,
            key: key.line(),
            created_at: Timestamp::now(),
        };
        let view = ssh_key_view(&fingerprint, &record);
        let after = json(&view);
        rows.push(ssh_key_row(&fingerprint, Some(&record)));
        self.note(caller, "ssh_key.add", name, rows, None, after).await?;
        Ok(view)
    }

    pub(crate) async fn remove_ssh_key(
        &self,
        caller: &Caller,
        name: &AccountName,
        id: &str,
    ) -> Result<(), Problem> {
        require_of_account(caller, name, Action::ChangeAccount)?;
        let _one_at_a_time = self.changing.lock().await;
        let found = {
            let register = self.register();
            let mut keys = register.credentials.ssh_keys.iter();
            let found = keys.find(|(_, key)| key.account == *name && key.id == id);
            found.map(|(fingerprint, key)| ssh_key_view(fingerprint, key))
        };
        let view = found.ok_or_else(|| no_key(name, id))?;
        let rows = vec![ssh_key_row(&view.fingerprint, None)];
        self.note(caller, "ssh_key.remove", name, rows, json(&view), None).await
    }

    pub(crate) fn s3_keys(&self, caller: &Caller, name: &AccountName) -> Result<Vec<S3KeyView>, Problem> {
        require_of_account(caller, name, Action::SeeAccount)?;
        self.view(name)?;
        let register = self.register();
        let own = register.credentials.s3_keys.iter().filter(|(_, key)| key.account == *name);
        let mut keys: Vec<_> = own.map(|(access_key, key)| s3_key_view(access_key, key)).collect();
        keys.sort_by(|one, other| {
            (one.created_at, &one.access_key).cmp(&(other.created_at, &other.access_key))
        });
        Ok(keys)
    }

    /// Only for oneself: whoever has the secret is its account to the object store.
    pub(crate) async fn make_s3_key(
        &self,
        caller: &Caller,
        name: &AccountName,
        new: NewS3Key,
        visitor: &Visitor,
    ) -> Result<MadeS3Key, Problem> {
        require_of_account(caller, name, Action::ChangeAccount)?;
        only_own(caller, name)?;
        caller.require_in_person()?;
        check_text("name", Some(&new.name))?;
        let (_one_at_a_time, mut rows) = self.prove_to_outlast(caller, new.proof, visitor).await?;
        let held = self.register().credentials.s3_keys.values().filter(|key| key.account == *name).count();
        at_most(held, name)?;
        let access_key = letters(ACCESS_KEY_LENGTH, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567");
        let secret_key =
            letters(SECRET_KEY_LENGTH, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789");
        let record = S3KeyRecord {
            account: name.clone(),
            name: new.name,
            secret: self.encryptor.encrypt(&s3_context(&access_key), secret_key.as_bytes()),
            created_at: Timestamp::now(),
        };
        let view = s3_key_view(&access_key, &record);
        rows.push(s3_key_row(&access_key, Some(&record)));
        self.note(caller, "s3_key.create", name, rows, None, json(&view)).await?;
        Ok(MadeS3Key { key: view, secret_key })
    }

    pub(crate) async fn remove_s3_key(
        &self,
        caller: &Caller,
        name: &AccountName,
        access_key: &str,
    ) -> Result<(), Problem> {
        require_of_account(caller, name, Action::ChangeAccount)?;
        let _one_at_a_time = self.changing.lock().await;
        let found = {
            let register = self.register();
            let found = register.credentials.s3_keys.get(access_key).filter(|key| key.account == *name);
            found.map(|key| s3_key_view(access_key, key))
        };
        let view = found.ok_or_else(|| no_key(name, access_key))?;
        let rows = vec![s3_key_row(access_key, None)];
        self.note(caller, "s3_key.remove", name, rows, json(&view), None).await
    }

    /// Says so if what was sealed cannot be opened: a data folder whose key was lost or exchanged.
    pub(super) fn check_seals(&self) {
        let register = self.register();
        let mut keys = register.credentials.s3_keys.iter();
        let broken = keys
            .find_map(|(access_key, key)| self.encryptor.decrypt(&s3_context(access_key), &key.secret).err());
        if let Some(error) = broken {
            tracing::error!("{error}; put back `{}` from the back-up", crate::encryption::KEY_FILE);
        }
    }

    async fn note(
        &self,
        caller: &Caller,
        action: &'static str,
        name: &AccountName,
        rows: Vec<DirectoryRow>,
        before: Option<serde_json::Value>,
        after: Option<serde_json::Value>,
    ) -> Result<(), Problem> {
        let by = caller.name();
        let deed = Deed { by: &by, from: caller.from, action, subject: name.to_string(), before, after };
        self.write(rows, deed).await.map_err(store_problem)
    }
}

/// For secrets that make their holder the account: nobody gets one for somebody else, administrators neither.
pub(super) fn only_own(caller: &Caller, name: &AccountName) -> Result<(), Problem> {
    if caller.person.name == *name {
        return Ok(());
    }
    let detail = format!("only `{name}` can be given this secret");
    Err(Problem::new(ProblemCode::Forbidden, detail))
}

fn at_most(held: usize, name: &AccountName) -> Result<(), Problem> {
    if held < MOST_KEYS {
        return Ok(());
    }
    let detail = format!("`{name}` has {MOST_KEYS} keys already");
    Err(Problem::new(ProblemCode::WrongState, detail).with_hint("remove those not in use"))
}

fn no_key(name: &AccountName, id: &str) -> Problem {
    let id: String = id.chars().take(64).collect();
    Problem::new(ProblemCode::NotFound, format!("`{name}` has no key `{id}`"))
}

fn s3_context(access_key: &str) -> String {
    format!("the S3 key {access_key}")
}

fn letters(count: usize, alphabet: &[u8]) -> String {
    let mut random = rand::rng();
    (0..count).map(|_| char::from(alphabet[random.random_range(0..alphabet.len())])).collect()
}
