//! A second proof beside the password: codes of an authenticator, and a few for when it is lost.

use danlu_core::authorization::Action;
use danlu_store::{DirectoryRow, SecondFactor};
use danlu_types::account::AccountName;
use danlu_types::api::{NewTotp, RecoveryCodes, TotpEnrolment, TotpRemoval};
use danlu_types::{Problem, ProblemCode};
use data_encoding::BASE32_NOPAD;
use jiff::Timestamp;
use rand::Rng as _;

use super::cache::{Account, account_row, hash};
use super::keys::only_own;
use super::manage::{no_account, require_of_account};
use super::proof::Shown;
use super::totp::{SECRET_BYTES, accept, step_at};
use super::{Caller, Deed, Directory, Visitor, json};
use crate::app::store_problem;

const RECOVERY_CODES: usize = 10;

impl Directory {
    /// Begins: the secret for the authenticator. An earlier beginning is forgotten.
    ///
    /// Asks for the password, where there is one: with a session alone, whoever has it would keep its owner out for good.
    pub(crate) async fn enrol(
        &self,
        caller: &Caller,
        name: &AccountName,
        new: NewTotp,
        visitor: &Visitor,
    ) -> Result<TotpEnrolment, Problem> {
        require_of_account(caller, name, Action::ChangeAccount)?;
        only_own(caller, name)?;
        caller.require_in_person()?;
        let has_none = |account: &Account| {
            if account.has_second_factor() {
                let detail = format!("`{name}` has an authenticator already");
                return Err(Problem::new(ProblemCode::WrongState, detail).with_hint("remove it first"));
            }
            Ok(())
        };
        let account = self.register().account(name).cloned().ok_or_else(|| no_account(name))?;
        has_none(&account)?;
        let shown = Shown { password: new.password, ..Shown::default() };
        let (_one_at_a_time, mut account) = self.prove(caller, shown, visitor).await?;
        has_none(&account)?;
        let secret: [u8; SECRET_BYTES] = rand::rng().random();
        account.second_factor = Some(SecondFactor {
            secret: self.encryptor.encrypt(&context(name), &secret),
            confirmed: false,
            last_step: None,
            recovery: Vec::new(),
        });
        self.note_second_factor(caller, "totp.enrol", &account, Vec::new()).await?;
        let secret = BASE32_NOPAD.encode(&secret);
        let address = format!("otpauth://totp/Danlu:{name}?secret={secret}&issuer=Danlu");
        Ok(TotpEnrolment { secret, address })
    }

    /// Ends the beginning: from now on a code is asked for at sign-in.
    pub(crate) async fn confirm(
        &self,
        caller: &Caller,
        name: &AccountName,
        code: &str,
    ) -> Result<RecoveryCodes, Problem> {
        require_of_account(caller, name, Action::ChangeAccount)?;
        only_own(caller, name)?;
        caller.require_in_person()?;
        let _one_at_a_time = self.change_by(caller).await?;
        let mut account = self.register().account(name).cloned().ok_or_else(|| no_account(name))?;
        if account.second_factor.is_none() || account.has_second_factor() {
            let detail = "there is nothing to confirm";
            return Err(Problem::new(ProblemCode::WrongState, detail).with_hint("enrol first"));
        }
        // Of an authenticator that its owner has begun to use: whoever guesses its code gets the recovery codes.
        self.prove_by_code(caller, &mut account, Some(code), "").await?;
        let codes = recovery_codes();
        if let Some(second) = &mut account.second_factor {
            second.confirmed = true;
            second.recovery = codes.iter().map(|code| hash(code)).collect();
        }
        self.note_second_factor(caller, "totp.confirm", &account, Vec::new()).await?;
        Ok(RecoveryCodes { codes })
    }

    /// Takes it away: with a code from its owner, with a proof of their own from an administrator who was asked to.
    pub(crate) async fn remove_second_factor(
        &self,
        caller: &Caller,
        name: &AccountName,
        removal: TotpRemoval,
        visitor: &Visitor,
    ) -> Result<(), Problem> {
        require_of_account(caller, name, Action::ChangeAccount)?;
        let is_own = caller.person.name == *name;
        let view = self.view(name)?;
        if is_own || view.admin {
            caller.require_in_person()?;
        }
        let (_one_at_a_time, spent) = if is_own {
            (self.change_by(caller).await?, Vec::new())
        } else {
            self.prove_to_outlast(caller, removal.proof, visitor).await?
        };
        let mut account = self.register().account(name).cloned().ok_or_else(|| no_account(name))?;
        if account.second_factor.is_none() {
            return Err(Problem::new(ProblemCode::NotFound, format!("`{name}` has no authenticator")));
        }
        if account.has_second_factor() && is_own {
            // A session that was left open should not be enough.
            self.prove_by_code(caller, &mut account, removal.code.as_deref(), "").await?;
        }
        account.second_factor = None;
        self.note_second_factor(caller, "totp.remove", &account, spent).await
    }

    /// The same for whoever guesses: few tries, then pauses.
    pub(super) fn spend_counted_code(
        &self,
        account: &mut Account,
        code: &str,
        visitor: &Visitor,
    ) -> Result<(), Problem> {
        let guesser = self.try_code(&account.name, visitor)?;
        self.spend_code(account, code, Timestamp::now())?;
        self.code_was_right(&guesser);
        Ok(())
    }

    /// Checks a code of the account and marks it as used, in memory: whoever asks writes the account.
    pub(super) fn spend_code(
        &self,
        account: &mut Account,
        code: &str,
        now: Timestamp,
    ) -> Result<(), Problem> {
        let context = context(&account.name);
        let Some(second) = &mut account.second_factor else { return Ok(()) };
        let secret = self.encryptor.decrypt(&context, &second.secret).map_err(|error| {
            tracing::error!("{error}");
            Problem::new(ProblemCode::Internal, "the authenticator's secret cannot be opened")
        })?;
        if let Some(step) = accept(&secret, code, step_at(now), second.last_step) {
            second.last_step = Some(step);
            return Ok(());
        }
        let spent = hash(&code.trim().to_lowercase());
        let before = second.recovery.len();
        second.recovery.retain(|left| *left != spent);
        if second.recovery.len() < before {
            return Ok(());
        }
        Err(code_needed("this code is not right, or was used already"))
    }

    async fn note_second_factor(
        &self,
        caller: &Caller,
        action: &'static str,
        account: &Account,
        mut rows: Vec<DirectoryRow>,
    ) -> Result<(), Problem> {
        rows.push(account_row(account));
        let by = caller.name();
        let after = json(&self.register().account_view(account));
        let subject = account.name.to_string();
        let deed = Deed { by: &by, from: caller.from, action, subject, before: None, after };
        self.write(rows, deed).await.map_err(store_problem)
    }
}

pub(super) fn code_needed(detail: &str) -> Problem {
    Problem::new(ProblemCode::SecondFactorNeeded, detail)
        .with_hint("send `code`: six digits of your authenticator, or one of your recovery codes")
}

fn recovery_codes() -> Vec<String> {
    let mut random = rand::rng();
    let mut code = || BASE32_NOPAD.encode(&random.random::<[u8; 10]>()).to_lowercase();
    (0..RECOVERY_CODES).map(|_| code()).collect()
}

fn context(name: &AccountName) -> String {
    format!("the authenticator of {name}")
}
