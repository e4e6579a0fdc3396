//! One table of several: each machine's own, put together in the order given.

use thiserror::Error;

use super::{LayeredRank, RankTable, Server, TableContent, Version, convert, numbered};

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CannotJoin {
    #[error("there is no table to begin with")]
    Nothing,
    #[error(
        "table 1 is of version {first}, table {position} of version {other}; convert them to one version first"
    )]
    Versions { first: Version, other: Version, position: usize },
}

/// Ranks follow the order of the tables and, within each, its own; what devices are called on their machines stays.
pub fn join(tables: Vec<RankTable>) -> Result<RankTable, CannotJoin> {
    let mut tables = tables.into_iter();
    let mut joined = tables.next().ok_or(CannotJoin::Nothing)?;
    for (table, position) in tables.zip(2..) {
        if table.version != joined.version {
            return Err(CannotJoin::Versions { first: joined.version, other: table.version, position });
        }
        match (&mut joined.content, table.content) {
            (TableContent::Servers(all), TableContent::Servers(more)) => all.extend(in_order(more)),
            (TableContent::Ranks(all), TableContent::Ranks(mut more)) => {
                more.sort_by_key(|rank| rank.rank);
                all.extend(more);
            }
            // Versions tell the two apart.
            (TableContent::Servers(_), TableContent::Ranks(_))
            | (TableContent::Ranks(_), TableContent::Servers(_)) => {}
        }
    }
    joined.content = match joined.content {
        TableContent::Servers(servers) => TableContent::Servers(numbered(in_order(servers))),
        TableContent::Ranks(ranks) => {
            let numbered =
                ranks.into_iter().zip(0..).map(|(rank, number)| LayeredRank { rank: number, ..rank });
            TableContent::Ranks(numbered.collect())
        }
    };
    if joined.version == Version::BoardId {
        // It says how many cards a machine has.
        let board = joined.extra.remove("board_id");
        joined.extra = convert::board(joined.servers());
        joined.extra.extend(board.map(|board| ("board_id".to_owned(), board)));
    }
    Ok(joined)
}

fn in_order(mut servers: Vec<Server>) -> Vec<Server> {
    for server in &mut servers {
        server.devices.sort_by_key(|device| device.rank);
    }
    servers
}
