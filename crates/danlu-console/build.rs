//! Has a release built again when the console was: its files are part of the binary. Other builds read them from disk, below
//! a path that is taken when they are compiled; so in a clone whose console is not built yet, an empty folder is made for it.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let files = Path::new("../../web/dist");
    std::fs::create_dir_all(files)?;
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo::rerun-if-changed={}", files.display());
    }
    Ok(())
}
