//! Chores of the repository that need more than a shell line: `cargo xtask <command>`.
//!
//! Checks read the tree and say what is wrong; only `generate` writes. Nothing here is part of the product.

#![expect(clippy::print_stdout, reason = "findings on standard output are what this program is for")]

mod files;
mod generate;
mod layers;
mod metadata;
mod unsafety;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <command>

  layers     check the dependency rule between crates
  files      warn about long Rust files, fail on very long ones and on `unsafe` that ADR 2 does not list
  words      fail where a phrase that docs/language.md replaced comes back, or two crates share a type's name
  generate   write the generated files of docs/
  fresh      fail if a generated file differs from what its generator prints now
";

fn main() -> ExitCode {
    let command = std::env::args().nth(1);
    let outcome = match command.as_deref() {
        Some("layers") => layers::run(),
        Some("files") => files::run(&root()),
        Some("words") => words::run(&root()),
        Some("generate") => generate::write_all(&root()),
        Some("fresh") => generate::check_all(&root()),
        Some("help" | "--help" | "-h") | None => {
            print!("{HELP}");
            Ok(())
        }
        Some(other) => Err(anyhow::anyhow!("no command `{other}`\n\n{HELP}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository: the parent of this crate's folder.
///
/// Cargo says at run time where that is; what it said at build time may be another clone that shares the target folder.
fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.parent().map(Path::to_path_buf).unwrap_or(here)
}
