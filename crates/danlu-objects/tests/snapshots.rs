//! What packing keeps, what it leaves out, and what unpacking refuses.

#![expect(clippy::unwrap_used, reason = "a panic is how a test says no, in its helpers too")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use danlu_objects::{CodeStore, ObjectsError, PackedSnapshot, open, pack, sha256_digest, unpack};
use proptest::prelude::*;
use tar::{Builder, EntryType, Header};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    File { content: Vec<u8>, executable: bool },
    Link(PathBuf),
}

fn packed(folder: &Path) -> (Vec<u8>, PackedSnapshot) {
    let mut archive = Vec::new();
    let snapshot = pack(folder, &mut archive, |_| {}).unwrap();
    (archive, snapshot)
}

fn unpacked(archive: &[u8]) -> Result<tempfile::TempDir, ObjectsError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("snapshot");
    fs::write(&file, archive).unwrap();
    unpack(open(&file)?, &folder.path().join("tree")).map(|()| folder)
}

fn read_tree(root: &Path) -> BTreeMap<PathBuf, Node> {
    fn walk(root: &Path, folder: &Path, tree: &mut BTreeMap<PathBuf, Node>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let relative = path.strip_prefix(root).unwrap().to_owned();
            if metadata.is_dir() {
                walk(root, &path, tree);
            } else if metadata.is_symlink() {
                tree.insert(relative, Node::Link(fs::read_link(&path).unwrap()));
            } else {
                let executable = metadata.permissions().mode() & 0o100 != 0;
                tree.insert(relative, Node::File { content: fs::read(&path).unwrap(), executable });
            }
        }
    }
    let mut tree = BTreeMap::new();
    walk(root, root, &mut tree);
    tree
}

fn write_tree(root: &Path, tree: &BTreeMap<PathBuf, Node>) {
    for (path, node) in tree {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match node {
            Node::Link(target) => symlink(target, &path).unwrap(),
            Node::File { content, executable } => {
                fs::write(&path, content).unwrap();
                let mode = if *executable { 0o755 } else { 0o640 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
    }
}

/// Folders are named `d…` and leaves `f…`, so that no path is both.
fn trees() -> impl Strategy<Value = BTreeMap<PathBuf, Node>> {
    let path = ("(d[a-c]/){0,3}", "f[a-zé ]{1,120}").prop_map(|(folder, leaf)| PathBuf::from(folder + &leaf));
    let file = (prop::collection::vec(any::<u8>(), 0..300), any::<bool>())
        .prop_map(|(content, executable)| Node::File { content, executable });
    let node = prop_oneof![9 => file, 1 => Just(Node::Link(PathBuf::from("da/f")))];
    prop::collection::btree_map(path, node, 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_was_packed_is_what_is_unpacked(tree in trees()) {
        let folder = tempfile::tempdir().unwrap();
        write_tree(folder.path(), &tree);
        let (archive, snapshot) = packed(folder.path());
        prop_assert_eq!(&snapshot.digest, &sha256_digest(&archive));
        prop_assert_eq!(snapshot.size.0, archive.len() as u64);
        let out = unpacked(&archive).unwrap();
        prop_assert_eq!(read_tree(&out.path().join("tree")), tree);
    }

    #[test]
    fn the_same_tree_has_the_same_digest_wherever_it_is(tree in trees()) {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write_tree(one.path(), &tree);
        write_tree(other.path(), &tree);
        prop_assert_eq!(packed(one.path()), packed(other.path()));
    }

    #[test]
    fn no_bytes_make_unpacking_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = unpacked(&bytes);
        let _ = unpacked(&zstd::encode_all(&bytes[..], 1).unwrap());
    }
}

#[test]
fn ignored_files_and_the_repository_itself_stay_behind() {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in [
        ("train.py", ""),
        (".gitignore", "*.pyc\n/data\n"),
        (".danluignore", "notes.md\n"),
        (".hidden", ""),
        ("notes.md", ""),
        ("module.pyc", ""),
        ("data/big.bin", ""),
        ("package/data/kept.txt", ""),
        (".git/HEAD", ""),
    ] {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let out = unpacked(&packed(folder.path()).0).unwrap();
    let kept: Vec<String> =
        read_tree(&out.path().join("tree")).keys().map(|path| path.display().to_string()).collect();
    assert_eq!(kept, [".danluignore", ".gitignore", ".hidden", "package/data/kept.txt", "train.py"]);
}

#[test]
fn too_much_is_refused_naming_the_largest_files() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [("small.py", 10), ("weights.bin", 3u64 << 30), ("other.bin", 1 << 20)] {
        fs::File::create(folder.path().join(name)).unwrap().set_len(bytes).unwrap();
    }
    let error = pack(folder.path(), std::io::sink(), |_| {}).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the folder holds 3 GiB in 3 files, more than the 2 GiB that a snapshot may have; the largest: \
         `weights.bin` (3 GiB), `other.bin` (1 MiB), `small.py` (10 bytes)"
    );
    assert!(error.hint().unwrap().contains(".danluignore"));
}

#[test]
fn links_out_of_the_folder_are_not_packed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("train.py"), "").unwrap();
    symlink("/mnt/data", folder.path().join("data")).unwrap();
    let error = pack(folder.path(), std::io::sink(), |_| {}).unwrap_err();
    assert_eq!(error.to_string(), "`data` is a link to `/mnt/data`, which is outside the folder");
}

#[test]
fn an_empty_folder_is_refused_rather_than_packed() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(pack(folder.path(), std::io::sink(), |_| {}), Err(ObjectsError::Empty(_))));
    let missing = folder.path().join("missing");
    assert!(matches!(pack(&missing, std::io::sink(), |_| {}), Err(ObjectsError::NotAFolder(_))));
}

/// An entry with any name and target, also those that the `tar` crate would not write.
fn raw_entry(builder: &mut Builder<Vec<u8>>, kind: EntryType, name: &str, target: &str, content: &[u8]) {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(0o6777);
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_cksum();
    builder.append(&header, content).unwrap();
}

fn archive_of(entries: &[(EntryType, &str, &str)]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (kind, name, target) in entries {
        raw_entry(&mut builder, *kind, name, target, b"");
    }
    zstd::encode_all(&builder.into_inner().unwrap()[..], 1).unwrap()
}

#[test]
fn hostile_archives_are_refused() {
    use EntryType::{Block, Char, Directory, Fifo, Link, Regular, Symlink};
    let cases: &[&[(EntryType, &str, &str)]] = &[
        &[(Regular, "/etc/cron.d/x", "")],
        &[(Regular, "../x", "")],
        &[(Regular, "a/../../x", "")],
        &[(Symlink, "a", "/etc")],
        &[(Symlink, "a", "..")],
        &[(Symlink, "a/b/up", "../.."), (Symlink, "x", "a/b/up/../y")],
        &[(Symlink, "a", "b"), (Regular, "a", "")],
        &[(Symlink, "a", "b"), (Directory, "a", ""), (Regular, "a/x", "")],
        &[(Symlink, "a", "b"), (Symlink, "a/x", "y")],
        &[(Regular, "a", ""), (Regular, "a", "")],
        &[(Regular, "a", ""), (Regular, "a/b", "")],
        &[(Link, "a", "/etc/passwd")],
        &[(Char, "null", "")],
        &[(Block, "sda", "")],
        &[(Fifo, "pipe", "")],
        &[(Regular, "", "")],
        &[(Regular, ".", "")],
        &[(Directory, "a", ""), (Regular, "a", "")],
        &[(Regular, "a", ""), (Directory, "a", "")],
    ];
    for case in cases {
        // The archive is at fault, not our disk.
        let error = unpacked(&archive_of(case)).expect_err("it was taken");
        assert!(!matches!(error, ObjectsError::Io { .. }), "{case:?}: {error}");
    }
    for long in ["a".repeat(5000), "a/".repeat(2500) + "a"] {
        let mut builder = Builder::new(Vec::new());
        let mut header = Header::new_gnu();
        header.set_size(0);
        header.set_mode(0o644);
        builder.append_data(&mut header, &long, &b""[..]).unwrap();
        let archive = zstd::encode_all(&builder.into_inner().unwrap()[..], 1).unwrap();
        let error = unpacked(&archive).expect_err("it was taken");
        assert!(!matches!(error, ObjectsError::Io { .. }), "{}", error.to_string().len());
    }
}

#[test]
fn a_link_that_is_already_there_is_not_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let (outside, tree) = (folder.path().join("outside"), folder.path().join("tree"));
    fs::create_dir(&outside).unwrap();
    fs::create_dir(&tree).unwrap();
    symlink(&outside, tree.join("a")).unwrap();
    let file = folder.path().join("snapshot");
    fs::write(&file, archive_of(&[(EntryType::Regular, "a/x", "")])).unwrap();
    assert!(unpack(open(&file).unwrap(), &tree).is_err());
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn set_user_id_bits_do_not_survive() {
    let out = unpacked(&archive_of(&[(EntryType::Regular, "a", "")])).unwrap();
    let mode = fs::metadata(out.path().join("tree/a")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7000, 0);
}

#[test]
fn decompression_is_bounded() {
    // An entry that claims 1 TiB, in an archive of a few bytes.
    let mut header = Header::new_gnu();
    header.set_path("a").unwrap();
    header.set_size(1 << 40);
    header.set_cksum();
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.write_all(header.as_bytes()).unwrap();
    let error = unpacked(&encoder.finish().unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "the archive is refused: it unpacks to more than 2 GiB");
}

#[test]
fn the_store_holds_only_what_it_verified() {
    let folder = tempfile::tempdir().unwrap();
    let store = CodeStore::new(folder.path().join("code"));
    let digest = sha256_digest(b"content");
    assert!(!store.has(&digest));
    assert!(matches!(store.put(&digest, &b"other"[..]), Err(ObjectsError::WrongDigest { .. })));
    assert!(!store.has(&digest));
    assert_eq!(store.put(&digest, &b"content"[..]).unwrap().0, 7);
    assert!(store.has(&digest));
    assert_eq!(store.put(&digest, &b"content"[..]).unwrap().0, 7);
    assert_eq!(fs::read_dir(folder.path().join("code")).unwrap().count(), 1);
    for bad in ["", "sha256:", "sha256:../../etc/passwd", "md5:abc", &digest.to_uppercase()] {
        assert!(!store.has(bad));
        assert!(matches!(store.put(bad, &b""[..]), Err(ObjectsError::BadDigest(_))));
    }
}

#[test]
fn an_archive_is_removed_unless_someone_asked_for_it_since() {
    let folder = tempfile::tempdir().unwrap();
    let store = CodeStore::new(folder.path().join("code"));
    assert_eq!(store.list().unwrap(), [], "a folder that is not there yet is empty");
    let digest = sha256_digest(b"content");
    store.put(&digest, &b"content"[..]).unwrap();
    fs::write(folder.path().join("code/.incoming-abc"), "half").unwrap();
    let [stored] = &store.list().unwrap()[..] else { panic!("one archive") };
    assert_eq!(stored.digest, digest);

    let archive = fs::File::open(store.path(&digest).unwrap()).unwrap();
    let day = Duration::from_hours(24);
    let yesterday = SystemTime::now() - day;
    let age = || archive.set_modified(yesterday - day).unwrap();
    age();
    assert!(store.has(&digest));
    assert!(!store.remove_if_unasked(&digest, yesterday).unwrap(), "asking made it young");
    age();
    store.put(&digest, &b"content"[..]).unwrap();
    assert!(!store.remove_if_unasked(&digest, yesterday).unwrap(), "so did storing it again");
    fs::File::open(store.path(&digest).unwrap()).unwrap().set_modified(yesterday - day).unwrap();
    assert!(store.remove_if_unasked(&digest, yesterday).unwrap());
    assert!(!store.has(&digest));

    store.clear_incoming();
    assert_eq!(fs::read_dir(folder.path().join("code")).unwrap().count(), 0);
}

/// Whatever is in an archive, it is unpacked below its folder or refused, and what refuses it is not our disk.
fn taken_or_refused(plain: &[u8]) {
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("snapshot");
    fs::write(&file, zstd::encode_all(plain, 1).unwrap()).unwrap();
    let into = outside.path().join("tree");
    let bounds = danlu_objects::UnpackLimits { bytes: 1 << 20, entries: 100 };
    if let Err(error) = danlu_objects::unpack_within(open(&file).unwrap(), &into, bounds) {
        assert!(!matches!(error, ObjectsError::Io { .. }), "{error}");
    }
    let names: Vec<_> =
        fs::read_dir(outside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| name == "snapshot" || name == "tree"), "{names:?}");
}

proptest! {
    #[test]
    fn hostile_headers_are_taken_or_refused(
        entries in prop::collection::vec((0..8usize, "(\\.\\./|/|\\./|[a-c]/|[a-c]|\u{0}){0,5}", "(\\.\\./|/|[a-c]/|[a-c]){0,4}"), 0..8),
    ) {
        use EntryType::{Directory, Fifo, GNULongLink, GNULongName, Link, Regular, Symlink, XHeader};
        let kinds = [Regular, Directory, Symlink, Link, Fifo, GNULongName, GNULongLink, XHeader];
        let mut builder = Builder::new(Vec::new());
        for (kind, name, target) in &entries {
            raw_entry(&mut builder, kinds[*kind], name, target, target.as_bytes());
        }
        taken_or_refused(&builder.into_inner().unwrap());
    }

    #[test]
    fn hostile_damage_to_an_archive_is_taken_or_refused(
        tree in trees(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        write_tree(folder.path(), &tree);
        let (archive, _) = packed(folder.path());
        let mut plain = zstd::decode_all(&archive[..]).unwrap();
        for (at, with) in damage {
            let at = at.index(plain.len());
            plain[at] = with;
        }
        taken_or_refused(&plain);
        taken_or_refused(&plain[..cut.index(plain.len() + 1)]);
    }
}
