//! `danlu keys`: SSH keys and S3 keys of one's account.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use comfy_table::Cell;
use danlu_client::Client;
use danlu_types::api::{NewS3Key, NewSshKey};

use crate::failure::CliError;
use crate::proof::proven;
use crate::{output, table};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// List, add and remove SSH public keys
    #[command(subcommand)]
    Ssh(Ssh),
    /// List, create and remove access keys of the S3 object store
    #[command(subcommand)]
    S3(S3),
}

#[derive(Debug, Subcommand)]
enum Ssh {
    /// List your SSH keys
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add an SSH public key
    Add {
        /// Public key file, e.g. `~/.ssh/id_ed25519.pub`
        file: PathBuf,
        /// Name of the key [default: the comment in the file]
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
    },
    /// Remove an SSH key
    Remove {
        /// Id from `danlu keys ssh list`
        id: String,
    },
}

#[derive(Debug, Subcommand)]
enum S3 {
    /// List your access keys
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Create an access key and print it with its secret key, which is shown once
    Add {
        /// Purpose of the key, e.g. `laptop`
        name: String,
    },
    /// Remove an access key
    Remove {
        /// Access key from `danlu keys s3 list`
        access_key: String,
    },
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    let own = client.whoami().await?.account.name;
    match arguments.kind {
        Kind::Ssh(Ssh::List { json }) => {
            let keys = client.ssh_keys_list(&own).await?.items;
            if json {
                output::json(&keys)?;
                return Ok(ExitCode::SUCCESS);
            }
            let mut table = table::new(["id", "name", "fingerprint", "added"]);
            for key in &keys {
                table.add_row([
                    Cell::new(&key.id),
                    Cell::new(output::printable(&key.name)),
                    Cell::new(&key.fingerprint),
                    Cell::new(format!("{:.0}", key.created_at)),
                ]);
            }
            table::print(&mut table)?;
        }
        Kind::Ssh(Ssh::Add { file, name }) => {
            let key = std::fs::read_to_string(&file).map_err(|error| {
                CliError::new(format!("cannot read `{}`", file.display())).caused_by(&error)
            })?;
            let new = NewSshKey { key, name, proof: None };
            let added =
                proven(async |proof| client.ssh_key_add(&own, &NewSshKey { proof, ..new.clone() }).await)
                    .await?;
            output::say(format!("added {} ({})", added.fingerprint, output::printable(&added.name)));
        }
        Kind::Ssh(Ssh::Remove { id }) => {
            client.ssh_key_remove(&own, &id).await?;
            output::say(format!("key {id} is removed"));
        }
        Kind::S3(S3::List { json }) => {
            let keys = client.s3_keys_list(&own).await?.items;
            if json {
                output::json(&keys)?;
                return Ok(ExitCode::SUCCESS);
            }
            let mut table = table::new(["access key", "for", "made"]);
            for key in &keys {
                table.add_row([
                    Cell::new(&key.access_key),
                    Cell::new(output::printable(&key.name)),
                    Cell::new(format!("{:.0}", key.created_at)),
                ]);
            }
            table::print(&mut table)?;
        }
        Kind::S3(S3::Add { name }) => {
            let new = NewS3Key { name, proof: None };
            let made =
                proven(async |proof| client.s3_key_make(&own, &NewS3Key { proof, ..new.clone() }).await)
                    .await?;
            output::lines([made.key.access_key, made.secret_key])?;
            output::say("access key and secret key; the latter is shown this once");
        }
        Kind::S3(S3::Remove { access_key }) => {
            client.s3_key_remove(&own, &access_key).await?;
            output::say(format!("key {access_key} is removed"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
