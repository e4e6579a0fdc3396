//! Trees that arrive in pieces, twice, or with evil names.

use super::*;

fn file(path: &str, offset: u64, size: u64) -> TreePut {
    let (path, modified_at) = (path.to_owned(), Timestamp::from_second(1_000_000).unwrap());
    TreePut { path, kind: TreeKind::File, offset, size, modified_at, executable: false, target: None }
}

fn link(path: &str, target: &str) -> TreePut {
    TreePut { kind: TreeKind::Link, target: Some(target.to_owned()), ..file(path, 0, 0) }
}

struct Area {
    folder: tempfile::TempDir,
}

impl Area {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        Area { folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("area")
    }

    fn take(&self, put: &TreePut, bytes: &[u8]) -> io::Result<u64> {
        take(&self.root(), &self.folder.path().join("draft"), put, bytes)
    }

    fn shown(&self) -> String {
        let show = |entry: TreeEntry| {
            let text = fs::read_to_string(self.root().join(&entry.path)).unwrap_or_default();
            format!("{} {:?} {}{}", entry.path, entry.kind, text, entry.target.unwrap_or_default())
        };
        list(&self.root()).unwrap().into_iter().map(show).collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn a_file_appears_when_it_is_whole() {
    let area = Area::new();
    assert_eq!(area.take(&file("a/b/model", 0, 6), b"one").unwrap(), 3);
    assert_eq!(area.shown(), "");
    assert_eq!(area.take(&file("a/b/model", 5, 6), b"x").unwrap(), 3, "a gap");
    assert_eq!(area.take(&file("a/b/model", 3, 6), b"tw").unwrap(), 5);
    assert_eq!(area.take(&file("a/b/model", 3, 6), b"two").unwrap(), 6, "again, and more");
    area.take(&file("empty", 0, 0), b"").unwrap();
    area.take(&link("latest", "a/b"), b"").unwrap();
    insta::assert_snapshot!(area.shown(), @r"
    a Folder 
    a/b Folder 
    a/b/model File onetwo
    empty File 
    latest Link a/b
    ");
    let modified = fs::metadata(area.root().join("a/b/model")).unwrap().modified().unwrap();
    assert_eq!(Timestamp::try_from(modified).unwrap(), file("", 0, 0).modified_at);
    assert_eq!(area.take(&file("a/b/model", 3, 6), b"two").unwrap(), 0, "its end was lost: all over again");
    assert_eq!(area.take(&file("a/b/model", 0, 3), b"new").unwrap(), 3);
    remove(&area.root(), Path::new("empty")).unwrap();
    remove(&area.root(), Path::new("empty")).unwrap();
    remove(&area.root(), Path::new("a")).unwrap();
    insta::assert_snapshot!(area.shown(), @r"
    a Folder 
    a/b Folder 
    a/b/model File new
    latest Link a/b
    ");
}

#[test]
fn what_was_a_folder_may_become_a_file_and_a_link_a_folder() {
    let area = Area::new();
    area.take(&TreePut { kind: TreeKind::Folder, ..file("x", 0, 0) }, b"").unwrap();
    area.take(&file("x", 0, 1), b"1").unwrap();
    area.take(&link("x", "y"), b"").unwrap();
    area.take(&TreePut { kind: TreeKind::Folder, ..file("x", 0, 0) }, b"").unwrap_err();
    remove(&area.root(), Path::new("x")).unwrap();
    area.take(&TreePut { kind: TreeKind::Folder, ..file("x", 0, 0) }, b"").unwrap();
    assert_eq!(area.shown(), "x Folder ");
}

#[test]
fn nobody_gets_out_through_links() {
    let area = Area::new();
    let outside = area.folder.path().join("outside");
    fs::write(outside.join("kept"), "").unwrap();
    for (name, target) in
        [("up", "../outside"), ("absolute", outside.to_str().unwrap()), ("file", "../outside/kept")]
    {
        area.take(&link(name, target), b"").unwrap();
        area.take(&file(&format!("{name}/kept"), 0, 4), b"evil").unwrap_err();
        area.take(&TreePut { kind: TreeKind::Folder, ..file(&format!("{name}/in"), 0, 0) }, b"").unwrap_err();
        remove(&area.root(), Path::new(&format!("{name}/kept"))).unwrap_err();
        let root = open_folder(&area.root()).unwrap();
        beneath(&root, Path::new(&format!("{name}/kept")), OFlag::O_RDONLY).unwrap_err();
        beneath(&root, Path::new(name), OFlag::O_RDONLY).unwrap_err();
    }
    area.take(&file("file", 0, 4), b"mine").unwrap();
    assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for path in [
        "",
        ".",
        "..",
        "a/..",
        "../a",
        "/a",
        "a/",
        "a//b",
        "./a",
        "a/.",
        "a\0b",
        &"a/".repeat(70),
        &"a".repeat(5000),
    ] {
        assert!(check(path).is_err(), "{path}");
    }
    for path in ["a", "a/b", "...", "a b/ü", ".hidden"] {
        assert!(check(path).is_ok(), "{path}");
    }
}
