//! Writing: whole files or nothing, with the mode they had.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::files::{ProjectTree, SourceFile};
use super::{Destination, ProjectError};
use crate::portable;

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> ProjectError {
    let path = path.to_owned();
    move |source| ProjectError::Write { path, source }
}

/// A copy inside of what is copied would be copied again the next time.
pub(super) fn refuse_inside(root: &Path, output: &Path) -> Result<(), ProjectError> {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if real(parent).starts_with(real(root)) || real(output).starts_with(real(root)) {
        return Err(ProjectError::OutputInside { path: output.to_owned() });
    }
    Ok(())
}

pub(super) fn make_folders(output: &Path, tree: &ProjectTree) -> Result<(), ProjectError> {
    fs::create_dir_all(output).map_err(failed(output))?;
    for folder in &tree.folders {
        let path = output.join(folder);
        fs::create_dir_all(&path).map_err(failed(&path))?;
    }
    for (link, target) in &tree.links {
        let path = output.join(link);
        match std::os::unix::fs::symlink(target, &path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(failed(&path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The file as it is, with its mode.
pub(super) fn copy(from: &Path, relative: &str, destination: &Destination) -> Result<(), ProjectError> {
    let Destination::Folder(output) = destination else { return Ok(()) };
    let to = output.join(relative);
    fs::copy(from, &to).map(|_| ()).map_err(failed(&to))
}

/// The changed bytes in its place, with the mode of the original.
pub(super) fn replace(
    from: &Path,
    relative: &str,
    bytes: &[u8],
    destination: &Destination,
) -> Result<(), ProjectError> {
    let to: PathBuf = match destination {
        Destination::Nowhere => return Ok(()),
        Destination::Folder(output) => output.join(relative),
        Destination::InPlace => from.to_owned(),
    };
    let write = || -> std::io::Result<()> {
        let mode = fs::metadata(from)?.permissions();
        let folder = to.parent().unwrap_or(Path::new("."));
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        temporary.write_all(bytes)?;
        fs::set_permissions(temporary.path(), mode)?;
        temporary.persist(&to).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(failed(&to))
}

/// The module that says which device there is, wherever a file imports it from.
pub(super) fn add_shims<'f>(
    copy: &Path,
    changed: impl Iterator<Item = &'f SourceFile>,
) -> Result<(), ProjectError> {
    let mut folders = BTreeSet::new();
    for file in changed {
        folders.insert(portable::shim_folder(&file.path, &file.module.package));
        // Modules in folders that are no packages are found from the folder of the script that is started.
        if file.module.package.is_empty() {
            folders.insert("");
        }
    }
    for folder in folders {
        let path = copy.join(folder).join(format!("{}.py", portable::SHIM_NAME));
        fs::write(&path, portable::SHIM).map_err(failed(&path))?;
    }
    Ok(())
}

/// What ModelArts needs, beside the migrated program.
pub(super) fn add_modelarts(output: &Path, main: &str) -> Result<(), ProjectError> {
    let entry = include_str!("../../data/modelarts/modelarts_entry.py").replace("{main}", main);
    let files = [
        ("modelarts_entry.py", entry.as_str()),
        ("ascend_modelarts_function/__init__.py", ""),
        (
            "ascend_modelarts_function/modelarts_path_manager.py",
            include_str!("../../data/modelarts/modelarts_path_manager.py"),
        ),
        (
            "ascend_modelarts_function/path_mapping_config.py",
            include_str!("../../data/modelarts/path_mapping_config.py"),
        ),
    ];
    let folder = output.join("ascend_modelarts_function");
    fs::create_dir_all(&folder).map_err(failed(&folder))?;
    for (name, text) in files {
        let path = output.join(name);
        // The table is the user's as soon as it is there.
        if !path.exists() {
            fs::write(&path, text).map_err(failed(&path))?;
        }
    }
    Ok(())
}
