//! Which files a project has, and what each is to us.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{ProjectError, module_of};
use crate::Module;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceFileKind {
    Python,
    Notebook,
    /// Scripts, Makefiles and Dockerfiles.
    Shell,
    /// YAML and JSON.
    Configuration,
    Requirements,
    /// The dependencies of a pyproject.toml.
    Pyproject,
    /// C++ and CUDA sources, in which operators are looked for.
    Cuda,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Relative to the project, with `/`.
    pub path: String,
    pub kind: SourceFileKind,
    pub module: Module,
}

#[derive(Debug, Default)]
pub(super) struct ProjectTree {
    pub(super) files: Vec<SourceFile>,
    pub(super) folders: Vec<String>,
    /// Links are copied as links and never followed: what they point to has its own turn, or lies outside.
    pub(super) links: Vec<(String, PathBuf)>,
}

/// What tools keep beside sources, and our own reports.
const SKIPPED: &[&str] =
    &[".git", "__pycache__", ".mypy_cache", ".pytest_cache", super::REPORTS, super::PLATFORM_REPORTS];

/// Larger files are data, whatever they are called.
const LARGEST_BYTES: u64 = 10 << 20;

pub(super) fn list(root: &Path) -> Result<ProjectTree, ProjectError> {
    let mut tree = ProjectTree::default();
    walk(root, "", &mut tree)?;
    tree.files.sort_by(|one, other| one.path.cmp(&other.path));
    let packages: HashSet<&str> =
        tree.files.iter().filter_map(|file| file.path.strip_suffix("/__init__.py")).collect();
    let packages: HashSet<String> = packages.into_iter().map(str::to_owned).collect();
    let paths: HashSet<String> = tree.files.iter().map(|file| file.path.clone()).collect();
    for file in tree.files.iter_mut().filter(|file| file.kind == SourceFileKind::Python) {
        file.module = module_of(&file.path, |folder| packages.contains(folder));
        file.module.npu_twin = npu_twin(&file.path, |path| paths.contains(path));
    }
    Ok(tree)
}

/// The file of the same name for NPUs: `npu_ops.py` beside `cuda_ops.py`, `npu/ops.py` beside `cuda/ops.py`.
fn npu_twin(path: &str, exists: impl Fn(&str) -> bool) -> Option<String> {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    path.match_indices("cuda").find_map(|(at, word)| {
        let (before, after) = (&path[..at], &path[at + word.len()..]);
        let is_word = !is_letter(before.chars().next_back()) && !is_letter(after.chars().next());
        let twin = format!("{before}npu{after}");
        (is_word && exists(&twin)).then_some(twin)
    })
}

fn walk(root: &Path, folder: &str, tree: &mut ProjectTree) -> Result<(), ProjectError> {
    let path = root.join(folder);
    let failed = |source| ProjectError::Read { path: path.clone(), source };
    for entry in fs::read_dir(&path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let relative = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type().map_err(failed)?;
        if SKIPPED.contains(&name.as_str()) && !kind.is_file() {
            continue;
        }
        if kind.is_symlink() {
            tree.links.push((relative, fs::read_link(entry.path()).map_err(failed)?));
        } else if kind.is_dir() {
            tree.folders.push(relative.clone());
            walk(root, &relative, tree)?;
        } else if kind.is_file() {
            let is_large = entry.metadata().is_ok_and(|metadata| metadata.len() > LARGEST_BYTES);
            let kind = if is_large { SourceFileKind::Other } else { kind_of(&name) };
            tree.files.push(SourceFile { path: relative, kind, module: Module::default() });
        }
    }
    Ok(())
}

pub(super) fn kind_of(name: &str) -> SourceFileKind {
    let lower = name.to_ascii_lowercase();
    let (stem, extension) = lower.rsplit_once('.').unwrap_or((lower.as_str(), ""));
    let is_environment =
        stem.starts_with("environment") || stem.starts_with("conda") || stem.ends_with("environment");
    match extension {
        "py" | "pyw" => SourceFileKind::Python,
        "ipynb" => SourceFileKind::Notebook,
        "sh" | "bash" | "zsh" | "slurm" | "sbatch" | "mk" | "env" | "dockerfile" => SourceFileKind::Shell,
        "txt" if stem.contains("requirement") || stem.contains("constraints") => SourceFileKind::Requirements,
        "yml" | "yaml" if is_environment => SourceFileKind::Requirements,
        "yml" | "yaml" => SourceFileKind::Configuration,
        "json" if !stem.contains("lock") => SourceFileKind::Configuration,
        "toml" if stem == "pyproject" => SourceFileKind::Pyproject,
        "cu" | "cuh" | "cpp" | "cc" | "cxx" => SourceFileKind::Cuda,
        _ if matches!(stem, "makefile" | "dockerfile" | "gnumakefile") => SourceFileKind::Shell,
        _ => SourceFileKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::{SourceFileKind, kind_of};
    use crate::project::module_of;

    #[test]
    fn files_are_told_by_their_names() {
        let kinds = [
            "a.py",
            "A.ipynb",
            "run.sh",
            "Makefile",
            "Dockerfile.gpu",
            "requirements-dev.txt",
            "environment.yml",
            "c.yaml",
            "pyproject.toml",
            "k.cu",
            "x.png",
        ]
        .map(kind_of);
        assert_eq!(
            kinds,
            [
                SourceFileKind::Python,
                SourceFileKind::Notebook,
                SourceFileKind::Shell,
                SourceFileKind::Shell,
                SourceFileKind::Shell,
                SourceFileKind::Requirements,
                SourceFileKind::Requirements,
                SourceFileKind::Configuration,
                SourceFileKind::Pyproject,
                SourceFileKind::Cuda,
                SourceFileKind::Other
            ]
        );
    }

    #[test]
    fn a_module_is_named_from_the_outermost_package() {
        let named = |path| module_of(path, |folder| matches!(folder, "src/pkg" | "src/pkg/sub"));
        assert_eq!(named("src/pkg/sub/a.py").name, "pkg.sub.a");
        assert_eq!(named("src/pkg/sub/__init__.py").package, "pkg.sub");
        assert_eq!(named("tools/train.py").name, "train");
    }
}
