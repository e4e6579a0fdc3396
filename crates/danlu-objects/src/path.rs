//! Which paths and link targets an archive may hold.

use std::path::{Component, Path, PathBuf};

/// The path of an entry below the snapshot's folder, or `None` if it could lead anywhere else.
pub(crate) fn entry_path(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(clean)
}

/// Whether a link at `link` (clean, below the folder) to `target` stays inside the folder.
///
/// `..` is only taken at the front, where it climbs through real folders. After a name it could climb out of
/// whatever that name links to: with `up -> ../..` in `a/b`, the target `a/b/up/../x` looks tame and is not.
pub(crate) fn link_stays_inside(link: &Path, target: &Path) -> bool {
    let mut depth = link.components().count().saturating_sub(1);
    let mut named = false;
    for component in target.components() {
        match component {
            Component::Normal(_) => named = true,
            Component::CurDir => {}
            Component::ParentDir if named || depth == 0 => return false,
            Component::ParentDir => depth -= 1,
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    !target.as_os_str().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_may_climb_only_as_far_as_the_folder() {
        for (link, target, inside) in [
            ("a", "b", true),
            ("a/b", "../c", true),
            ("a/b/up", "../..", true),
            ("a", "../c", false),
            ("a/b", "../../c", false),
            ("a", "/etc/passwd", false),
            ("x", "a/b/up/../x", false),
            ("x", "", false),
        ] {
            assert_eq!(link_stays_inside(Path::new(link), Path::new(target)), inside, "{link} -> {target}");
        }
    }
}
