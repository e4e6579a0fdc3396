//! `danlu login`, `logout`, `whoami`, `password`: who one is to the server.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use danlu_client::{Client, ClientError, Profile, ProfileName, ServerFile, data_folder};
use danlu_types::ProblemCode;
use danlu_types::account::AccountName;
use danlu_types::api::{NewPassword, SignIn, Whoami};
use danlu_types::fingerprint::Fingerprint;
use danlu_types::link::{Link, sign_in_page};

use crate::failure::CliError;
use crate::output;
use crate::terminal::ask_secret;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of your account
    #[arg(required_unless_present = "link", value_name = "ACCOUNT")]
    name: Option<String>,
    /// Print a one-time link that signs you in to the console
    ///
    /// The link works once, within ten minutes. It signs in the account that this command line uses. On the server's
    /// machine, if you are not signed in, that account is `admin`.
    #[arg(long, conflicts_with_all = ["name", "server"])]
    link: bool,
    /// URL of the server, e.g. `https://danlu.lab.example` [default: the server on this machine]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// SHA-256 fingerprint of the server's certificate, as `danlu up --tls` prints it
    ///
    /// A certificate with this fingerprint is trusted without a certificate authority.
    #[arg(long, value_name = "FINGERPRINT", requires = "name")]
    fingerprint: Option<Fingerprint>,
}

#[derive(Debug, Args)]
pub(crate) struct WhoamiArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PasswordArguments {
    /// Name of your account [default: the one you are signed in with]
    #[arg(value_name = "ACCOUNT")]
    name: Option<AccountName>,
    /// One-time link from an administrator, instead of your current password
    #[arg(long, value_name = "URL")]
    link: Option<String>,
    /// Keep your API tokens; by default, they are revoked and your sessions end
    #[arg(long)]
    keep_tokens: bool,
    /// URL of the server [default: where you are signed in, or the server on this machine]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// SHA-256 fingerprint of the server's certificate, as `danlu up --tls` prints it
    #[arg(long, value_name = "FINGERPRINT")]
    fingerprint: Option<Fingerprint>,
}

pub(crate) async fn login(
    data: Option<&Path>,
    client: impl FnOnce() -> Result<Client, ClientError>,
    profile: Option<ProfileName>,
    arguments: Arguments,
) -> Result<ExitCode, CliError> {
    let Some(name) = arguments.name else {
        let client = client()?;
        let link = client.sign_in_link().await?;
        output::line(sign_in_page(&client.address(), &link.secret))?;
        output::say("open this to sign in; it works once, within ten minutes");
        return Ok(ExitCode::SUCCESS);
    };
    let (address, fingerprint, found_in) = if let Some(address) = arguments.server {
        (address, arguments.fingerprint, None)
    } else {
        let folder = data_folder(data);
        let file = ServerFile::read(&folder)?;
        let folder = folder.canonicalize().unwrap_or(folder);
        (file.address, arguments.fingerprint.or(file.fingerprint), Some(folder))
    };
    let password = ask_secret("Password: ")?;
    let client = Client::trusting(&address, "", fingerprint);
    let mut request = SignIn { name: Some(name), password: Some(password), link: None, code: None };
    let token = match client.sign_in(&request).await {
        Err(ClientError::Problem(problem)) if problem.code == ProblemCode::SecondFactorNeeded => {
            request.code = Some(ask_secret("Code of your authenticator: ")?);
            client.sign_in(&request).await?
        }
        token => token?,
    };
    let account = Client::trusting(&address, &token, fingerprint).whoami().await?.account.name.to_string();
    let name = profile_name(profile)?;
    let profile = Profile { address, account, token, fingerprint, data: found_in };
    profile.write(&name).map_err(|error| {
        CliError::new(format!("signed in, but could not write `{}`", Profile::path(&name).display()))
            .caused_by(&error)
    })?;
    output::say(format!("signed in as {} at {}", profile.account, profile.address));
    // What is set in this shell may send the next command elsewhere, or as somebody else.
    if let Some(command) = told_to_use(&name, &profile) {
        output::say(command);
    }
    Ok(ExitCode::SUCCESS)
}

/// What has to be said where the commands that follow do not use this sign-in by themselves.
fn told_to_use(name: &ProfileName, profile: &Profile) -> Option<String> {
    let chosen = Client::discover(None).ok().map(|client| client.uses(&profile.token));
    if chosen == Some(true) {
        return None;
    }
    let set = |variable: &&str| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    let variables: Vec<String> = ["DANLU_SERVER", "DANLU_TOKEN", "DANLU_PROFILE", "DANLU_DATA"]
        .iter()
        .filter(|variable| set(variable))
        .map(|variable| format!("${variable}"))
        .collect();
    let because = match &variables[..] {
        [] => String::new(),
        names => format!(", because of {} in this shell", names.join(" and ")),
    };
    Some(format!("commands do not use this sign-in by themselves{because}; `danlu --profile {name} …` does"))
}

/// The profile that was named, by the flag or by `$DANLU_PROFILE`.
fn profile_name(given: Option<ProfileName>) -> Result<ProfileName, CliError> {
    let named = std::env::var("DANLU_PROFILE").ok().filter(|name| !name.is_empty());
    match (given, named) {
        (Some(name), _) => Ok(name),
        (None, Some(name)) => Ok(name.parse::<ProfileName>()?),
        (None, None) => Ok(ProfileName::default()),
    }
}

pub(crate) async fn logout(profile: Option<ProfileName>) -> Result<ExitCode, CliError> {
    let name = profile_name(profile)?;
    if Profile::read(&name)?.is_none() {
        output::say("you are not signed in");
        return Ok(ExitCode::SUCCESS);
    }
    // A session that the server has forgotten is over as well.
    let ended = match Client::of_profile(&name)?.sign_out().await {
        Err(error @ ClientError::Unreachable { .. }) => Err(error),
        _ => Ok(()),
    };
    let forget = Profile::forget(&name);
    forget.map_err(|error| CliError::new("could not remove the profile").caused_by(&error))?;
    ended?;
    output::say("signed out");
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn whoami(client: Client, arguments: WhoamiArguments) -> Result<ExitCode, CliError> {
    let who = client.whoami().await?;
    if arguments.json {
        output::json(&who)?;
    } else {
        output::lines(whoami_lines(&who))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn whoami_lines(who: &Whoami) -> Vec<String> {
    let account = &who.account;
    let what = if account.admin { ", an administrator" } else { "" };
    let mut lines = vec![format!("{}{what}", account.name)];
    if who.scope != danlu_types::account::Scope::All {
        lines.push(format!("with a token for `{}`", who.scope.as_str()));
    }
    lines.push(format!("owner of the workspace `{}`, member of `default`", account.name));
    let roles = account.workspaces.iter();
    lines.extend(roles.map(|at| format!("{} of `{}`", at.role.as_str(), output::printable(&at.workspace))));
    lines
}

pub(crate) async fn password(
    client: impl FnOnce() -> Result<Client, ClientError>,
    arguments: PasswordArguments,
) -> Result<ExitCode, CliError> {
    // The page's address says where and whose, too.
    let link = arguments.link.as_deref().map(Link::read);
    let said = link.clone().map(|link| (link.server, link.account));
    let (server, account) = said.unwrap_or_default();
    let client = match arguments.server.or(server) {
        Some(address) => Client::trusting(&address, "", arguments.fingerprint),
        None => client()?,
    };
    let name = match arguments.name.or(account) {
        Some(name) => name,
        None => client.whoami().await?.account.name,
    };
    let current = match &link {
        Some(_) => None,
        None => Some(ask_secret("Present password: ")?),
    };
    let link = link.map(|link| link.secret);
    let password = ask_secret("New password: ")?;
    let keep_tokens = arguments.keep_tokens;
    let mut new = NewPassword { password, current, link, code: None, keep_tokens };
    match client.password_set(&name, &new).await {
        Err(ClientError::Problem(problem)) if problem.code == ProblemCode::SecondFactorNeeded => {
            new.code = Some(ask_secret("Code of your authenticator: ")?);
            client.password_set(&name, &new).await?;
        }
        done => done?,
    }
    let ended =
        if keep_tokens { "sessions that were open" } else { "sessions that were open and API tokens" };
    output::say(format!("the password of {name} is set; {ended} have ended"));
    Ok(ExitCode::SUCCESS)
}
