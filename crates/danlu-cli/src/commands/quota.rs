//! `danlu quota`: where workspaces stand with what they were promised.

use std::process::ExitCode;

use clap::Args;
use comfy_table::{Cell, Table};
use danlu_client::Client;
use danlu_types::api::QuotaView;
use danlu_types::reason::QuotaResource;

use crate::failure::CliError;
use crate::{output, table, words};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of the workspace [default: all workspaces]
    workspace: Option<String>,
    /// Include CPUs and memory, even without a guarantee or limit
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    let quota = client.quota(arguments.workspace.as_deref()).await?.items;
    if arguments.json {
        output::json(&quota)?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown: Vec<&QuotaView> = quota.iter().filter(|quota| arguments.all || is_telling(quota)).collect();
    if shown.is_empty() {
        output::say("no devices are used, guaranteed or limited; `--all` shows CPUs and memory");
        return Ok(ExitCode::SUCCESS);
    }
    table::print(&mut quota_table(&shown))?;
    for quota in shown.iter().filter(|quota| !quota.loans.is_empty() || quota.broken > 0.0) {
        output::say(format!("{}: {}", quota.workspace, quota.text));
    }
    Ok(ExitCode::SUCCESS)
}

fn is_telling(quota: &QuotaView) -> bool {
    let is_device = matches!(quota.resource, QuotaResource::Nvidia | QuotaResource::Ascend);
    quota.guaranteed > 0.0 || quota.limit.is_some() || (is_device && quota.used > 0.0)
}

pub(crate) fn quota_table(quota: &[&QuotaView]) -> Table {
    let mut table = table::new([
        "workspace",
        "of",
        "guaranteed",
        "broken",
        "limit",
        "used",
        "borrowed",
        "lent",
        "free",
        "by",
    ]);
    for quota in quota {
        let amount = |amount: f64| match quota.resource {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes are whole")]
            QuotaResource::Memory if amount > 0.0 => words::size(amount as u64),
            _ if amount == 0.0 => "–".to_owned(),
            _ => amount.to_string(),
        };
        let users: Vec<String> =
            quota.users.iter().map(|user| format!("{} {}", user.user, amount(user.used))).collect();
        table.add_row([
            Cell::new(output::printable(&quota.workspace)),
            Cell::new(word(quota.resource)),
            Cell::new(amount(quota.guaranteed)),
            Cell::new(amount(quota.broken)),
            Cell::new(
                quota.limit.map_or("–".to_owned(), |limit| {
                    if limit == 0.0 { "0".to_owned() } else { amount(limit) }
                }),
            ),
            Cell::new(amount(quota.used)),
            Cell::new(amount(quota.borrowed)),
            Cell::new(amount(quota.lent)),
            Cell::new(amount(quota.free)),
            Cell::new(output::printable(&users.join(", "))),
        ]);
    }
    table
}

fn word(resource: QuotaResource) -> &'static str {
    match resource {
        QuotaResource::Nvidia => "NVIDIA",
        QuotaResource::Ascend => "Ascend",
        QuotaResource::Cpus => "CPUs",
        QuotaResource::Memory => "memory",
    }
}
