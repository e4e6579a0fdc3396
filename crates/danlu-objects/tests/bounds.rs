//! What an archive of a few kilobytes may cost: memory, folders, and the way down.
//!
//! One test, because all look at the most memory that this process ever had.

#![expect(clippy::unwrap_used, reason = "a panic is how a test says no, in its helpers too")]

use std::fs;
use std::io::{self, Read as _, Write};
use std::path::Path;

use danlu_objects::{ObjectsError, open, pack, unpack};
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use tar::{EntryType, Header};

/// What decoding takes, the test program itself, and room to spare.
const MOST_MEMORY_KIB: u64 = 400 << 10;

fn peak_memory_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

struct Draft(zstd::Encoder<'static, Vec<u8>>);

impl Draft {
    fn new() -> Self {
        Draft(zstd::Encoder::new(Vec::new(), 1).unwrap())
    }

    fn add(&mut self, kind: EntryType, name: &str, size: u64, mut content: impl io::Read) {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_mode(0o644);
        header.set_size(size);
        header.set_cksum();
        self.0.write_all(header.as_bytes()).unwrap();
        assert_eq!(io::copy(&mut content, &mut self.0).unwrap(), size);
        io::copy(&mut io::repeat(0).take(size.next_multiple_of(512) - size), &mut self.0).unwrap();
    }

    fn named(&mut self, kind: EntryType, name: &str) {
        self.add(EntryType::GNULongName, "././@LongLink", name.len() as u64, name.as_bytes());
        self.add(kind, "x", 0, io::empty());
    }

    fn unpacked(self) -> Result<(), ObjectsError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("archive");
        fs::write(&file, self.0.finish().unwrap()).unwrap();
        let result = unpack(open(&file).unwrap(), &folder.path().join("tree"));
        danlu_walk::remove(&folder.path().join("tree")).unwrap();
        result
    }
}

#[test]
fn no_archive_costs_more_than_it_may() {
    // The security review's H4, for each way to say a name: 57,737 bytes that became 4 GiB.
    for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
        let mut draft = Draft::new();
        let size = 1800 << 20;
        draft.add(kind, "././@LongLink", size, io::repeat(b'a').take(size));
        let refused = draft.unpacked().unwrap_err().to_string();
        assert!(refused.contains("too long"), "{refused}");
    }

    let mut draft = Draft::new();
    draft.named(EntryType::Directory, &"d/".repeat(100_000));
    let refused = draft.unpacked().unwrap_err().to_string();
    assert!(refused.contains("too long"), "{refused}");

    let mut draft = Draft::new();
    draft.named(EntryType::Directory, &"d/".repeat(2000));
    let refused = draft.unpacked().unwrap_err().to_string();
    assert!(refused.contains("in too many folders"), "{refused}");

    // Links are made at the end: until then all are remembered.
    let mut draft = Draft::new();
    for number in 0..20_000 {
        let target = "t".repeat(4000);
        draft.add(EntryType::GNULongLink, "././@LongLink", target.len() as u64, target.as_bytes());
        draft.add(EntryType::Symlink, &format!("link-{number}"), 0, io::empty());
    }
    let refused = draft.unpacked().unwrap_err().to_string();
    assert!(refused.contains("too many links"), "{refused}");

    let peak = peak_memory_kib();
    assert!(peak < MOST_MEMORY_KIB, "{peak} KiB");
}

#[test]
fn a_folder_without_a_bottom_is_not_packed() {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let root = folder.path().join("code");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("train.py"), "").unwrap();
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
    let mut below = nix::fcntl::open(&root, flags, Mode::empty()).unwrap();
    for _ in 0..100_000 {
        mkdirat(&below, "d", Mode::S_IRWXU).unwrap();
        below = openat(&below, "d", flags, Mode::empty()).unwrap();
    }
    let refused = pack(&root, io::sink(), |_| {}).unwrap_err();
    danlu_walk::remove(&root).unwrap();
    assert!(refused.to_string().starts_with("it is more than 256 folders deep at `d/d/"), "{refused}");
    assert!(refused.hint().unwrap().contains(".danluignore"));
}

#[test]
fn extended_headers_give_names_and_nothing_else() {
    let record = |text: &str| {
        let length = text.len() + 2 + (text.len() + 4).to_string().len();
        format!("{length} {text}\n")
    };
    let archive = |text: &str| {
        let mut draft = Draft::new();
        draft.add(EntryType::XHeader, "PaxHeaders/x", text.len() as u64, text.as_bytes());
        draft.add(EntryType::Regular, "short", 2, &b"ab"[..]);
        draft
    };
    let folder = tempfile::tempdir().unwrap();
    let unpacked = |text: &str, into: &Path| {
        let file = folder.path().join("archive");
        fs::write(&file, archive(text).0.finish().unwrap()).unwrap();
        unpack(open(&file).unwrap(), into)
    };
    let long = format!("{}/f", "folder".repeat(20));
    unpacked(&record(&format!("path={long}")), &folder.path().join("one")).unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("one").join(&long)).unwrap(), "ab");
    let texts = ["path=../x", "path=/x", "size=1", "path=a\0b"].map(record);
    for (number, text) in
        texts.iter().map(String::as_str).chain(["5 x", "99 path=x\n", "0 ", " ", "x"]).enumerate()
    {
        let into = folder.path().join(format!("wrong-{number}"));
        assert!(unpacked(text, &into).is_err(), "{text:?} was taken");
    }
}
