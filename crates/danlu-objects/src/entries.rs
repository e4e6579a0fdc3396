//! The entries of an archive with their names.
//!
//! A name that does not fit its header comes in an entry of its own before it, which the `tar` crate reads whole, whatever
//! its size: a few bytes of archive would be gigabytes of memory. So the headers are taken as they are, and names are read
//! here, within a bound.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use tar::{Archive, Entry, EntryType};

use crate::unpack::UnpackLimits;
use crate::{ObjectsError, shown_name};

/// What the kernel takes for a path, and more than any honest snapshot needs.
const LONGEST_NAME: u64 = 4096;
/// Extended headers hold more than names; what is not needed is passed over, but it is read first.
const LONGEST_EXTENSION: u64 = 64 << 10;
/// 128 MiB: more than our own level ever asks for, and a bound on the decoder's memory.
const LARGEST_WINDOW_LOG: u32 = 27;

pub(crate) type Content<'a> = Entry<'a, Bounded<zstd::Decoder<'static, BufReader<File>>>>;

/// What is to be known of an entry besides its content.
#[derive(Debug, Default)]
pub(crate) struct Name {
    pub(crate) path: PathBuf,
    /// Where a link leads.
    pub(crate) target: PathBuf,
}

/// What entries before this one said of it.
#[derive(Debug, Default)]
struct Before {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
}

/// Shows each entry with its name, until `visit` breaks off; what it broke off with.
pub(crate) fn each<T>(
    archive: File,
    bounds: UnpackLimits,
    mut visit: impl FnMut(Name, &mut Content<'_>) -> Result<ControlFlow<T>, ObjectsError>,
) -> Result<Option<T>, ObjectsError> {
    let failed = |error| read_error(error, bounds);
    let mut decoder = zstd::Decoder::new(archive).map_err(ObjectsError::Damaged)?;
    decoder.window_log_max(LARGEST_WINDOW_LOG).map_err(ObjectsError::Damaged)?;
    let mut archive = Archive::new(Bounded { inner: decoder, left: bounds.stream_bytes() });
    let (mut count, mut before) = (0, Before::default());
    for entry in archive.entries().map_err(failed)?.raw(true) {
        let mut entry = entry.map_err(failed)?;
        let kind = entry.header().entry_type();
        if let EntryType::GNULongName | EntryType::GNULongLink | EntryType::XHeader = kind {
            before.read(kind, &mut entry, bounds)?;
            continue;
        }
        let name = before.name(&entry)?;
        count += 1;
        let hostile = |reason| ObjectsError::Hostile { entry: shown_name(&name.path), reason };
        if count > bounds.entries {
            return Err(hostile("there are too many entries"));
        }
        if entry.size() > bounds.bytes {
            return Err(bounds.exceeded());
        }
        if let ControlFlow::Break(found) = visit(name, &mut entry)? {
            return Ok(Some(found));
        }
    }
    if before.path.is_some() || before.target.is_some() {
        return Err(ObjectsError::Damaged(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(None)
}

impl Before {
    fn read(
        &mut self,
        kind: EntryType,
        entry: &mut Content<'_>,
        bounds: UnpackLimits,
    ) -> Result<(), ObjectsError> {
        let hostile = |entry: &Content<'_>, reason| {
            let entry =
                shown_name(&PathBuf::from(std::ffi::OsString::from_vec(entry.path_bytes().into_owned())));
            ObjectsError::Hostile { entry, reason }
        };
        let most = if kind == EntryType::XHeader { LONGEST_EXTENSION } else { LONGEST_NAME + 1 };
        if entry.size() > most {
            return Err(hostile(entry, "its name, or what is said of it, is too long"));
        }
        let mut content = Vec::new();
        let read = entry.take(most).read_to_end(&mut content).map_err(|error| read_error(error, bounds))?;
        if read as u64 != entry.size() {
            return Err(ObjectsError::Damaged(io::ErrorKind::UnexpectedEof.into()));
        }
        let slots = match kind {
            EntryType::GNULongName => vec![(&mut self.path, content)],
            EntryType::GNULongLink => vec![(&mut self.target, content)],
            _ => {
                let (mut path, mut target) = (None, None);
                for (key, value) in
                    extensions(&content).ok_or_else(|| hostile(entry, "what is said of it cannot be read"))?
                {
                    match key {
                        b"path" => path = Some(value.to_vec()),
                        b"linkpath" => target = Some(value.to_vec()),
                        // Two sizes for one entry: readers of the archive would not agree on what is in it.
                        b"size" => return Err(hostile(entry, "it has a size of its own")),
                        _ => {}
                    }
                }
                let slots = [(&mut self.path, path), (&mut self.target, target)];
                slots.into_iter().filter_map(|(slot, name)| Some((slot, name?))).collect()
            }
        };
        for (slot, mut name) in slots {
            while name.last() == Some(&0) {
                name.pop();
            }
            if name.len() as u64 > LONGEST_NAME {
                return Err(hostile(entry, "the name is too long"));
            }
            if slot.replace(name).is_some() {
                return Err(hostile(entry, "it has two names"));
            }
        }
        Ok(())
    }

    /// The name of the entry that they stand before.
    fn name(&mut self, entry: &Content<'_>) -> Result<Name, ObjectsError> {
        let header = entry.header();
        let path = self.path.take().unwrap_or_else(|| header.path_bytes().into_owned());
        let target = self.target.take().or_else(|| header.link_name_bytes().map(Cow::into_owned));
        let text = |bytes| PathBuf::from(std::ffi::OsString::from_vec(bytes));
        let name = Name { path: text(path), target: text(target.unwrap_or_default()) };
        if name.path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(ObjectsError::Hostile {
                entry: shown_name(&name.path),
                reason: "the name holds a zero byte",
            });
        }
        Ok(name)
    }
}

/// The records of an extended header: `21 path=some/where\n`, where the number counts all of the record.
fn extensions(mut text: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let mut records = Vec::new();
    while !text.is_empty() {
        let space = text.iter().position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(&text[..space]).ok()?.parse().ok()?;
        let record = text.get(space + 1..length)?.strip_suffix(b"\n")?;
        let equals = record.iter().position(|byte| *byte == b'=')?;
        records.push((&record[..equals], &record[equals + 1..]));
        text = &text[length..];
    }
    Some(records)
}

/// Ends a stream that grows past what any honest snapshot needs.
pub(crate) struct Bounded<R> {
    inner: R,
    left: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("past the bound")]
pub(crate) struct PastBound;

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| io::Error::other(PastBound))?;
        Ok(read)
    }
}

pub(crate) fn read_error(error: io::Error, bounds: UnpackLimits) -> ObjectsError {
    match error.get_ref() {
        Some(inner) if inner.is::<PastBound>() => bounds.exceeded(),
        _ => ObjectsError::Damaged(error),
    }
}

/// The content of one file of an archive goes to `take`, with its size, if the archive has that file and it is not longer
/// than `most`. What is read is never held whole.
pub fn find_entry<T>(
    archive: File,
    path: &Path,
    most: u64,
    take: impl FnOnce(u64, &mut dyn Read) -> T,
) -> Result<Option<T>, ObjectsError> {
    let mut take = Some(take);
    each(archive, UnpackLimits::default(), |name, entry| {
        let is_it = entry.header().entry_type() == EntryType::Regular
            && crate::path::entry_path(&name.path).is_some_and(|found| found == path);
        let Some(take) = take.take_if(|_| is_it) else { return Ok(ControlFlow::Continue(())) };
        match entry.size() {
            size if size > most => Err(ObjectsError::Bomb { limit: most }),
            size => Ok(ControlFlow::Break(take(size, entry))),
        }
    })
}
