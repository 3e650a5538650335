//! Records in a file: framed, numbered, checked.
//!
//! `docs/sessions.md` describes the format.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::kept::KeepError;

/// The first bytes of every log, and the version of its format.
const MAGIC: &[u8; 8] = b"ANEMSLOG";
const VERSION: u32 = 1;
/// Where the records begin.
const START: usize = 12;
/// Bytes of a record before its payload: length, number, kind.
const FRAME: usize = 9;
/// The longest payload, in bytes.
const PAYLOAD_LIMIT: usize = 64 << 20;
/// The longest log that is read, in bytes.
const FILE_LIMIT: u64 = 1 << 30;

/// What a record tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Whose the log is.
    Begin = 1,
    /// How the conversation changed.
    Change = 2,
    /// Tokens that were generated.
    Tokens = 3,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        [Self::Begin, Self::Change, Self::Tokens].into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// The records of a file, and what of it is none.
pub(super) struct Records {
    bytes: Vec<u8>,
    /// Kind and place of each payload.
    places: Vec<(Kind, std::ops::Range<usize>)>,
    /// Where the records end.
    pub(super) end: usize,
    /// Whether whole records come after the end: then something in between was damaged.
    pub(super) damaged: bool,
}

impl Records {
    /// Reads a log. What follows the last good record is told, not refused.
    pub(super) fn read(path: &Path) -> Result<Self, KeepError> {
        let failed = |source| KeepError::Io { what: "read", source };
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if !metadata.is_file() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        if metadata.len() > FILE_LIMIT {
            return Err(KeepError::TooLong { found: metadata.len(), limit: FILE_LIMIT });
        }
        let mut bytes = Vec::new();
        File::open(path).and_then(|file| file.take(FILE_LIMIT).read_to_end(&mut bytes)).map_err(failed)?;
        if !bytes.starts_with(MAGIC) || bytes.len() < START {
            return Err(KeepError::NotALog);
        }
        let found = word(&bytes, 8);
        if found != VERSION {
            return Err(KeepError::Version { found, known: VERSION });
        }
        let (mut places, mut end) = (Vec::new(), START);
        while let Some((kind, payload)) = record(&bytes, end, places.len() as u32) {
            end = payload.end + 4;
            places.push((kind, payload));
        }
        // A killed process leaves half a record at most, and nothing after it.
        let damaged = goes_on(&bytes, end + 1, places.len() as u32);
        Ok(Self { places, end, damaged, bytes })
    }

    /// Kind, payload and place of each record.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Kind, &[u8], usize)> {
        self.places.iter().map(|(kind, place)| (*kind, &self.bytes[place.clone()], place.start - FRAME))
    }

    /// Bytes that are no record.
    pub(super) fn rest(&self) -> usize {
        self.bytes.len() - self.end
    }

    pub(super) fn count(&self) -> u32 {
        self.places.len() as u32
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Kind and payload of the record at `at`, if it is whole and has this number.
fn record(bytes: &[u8], at: usize, number: u32) -> Option<(Kind, std::ops::Range<usize>)> {
    let frame = bytes.get(at..at.checked_add(FRAME)?)?;
    let (length, kind) = (word(frame, 0) as usize, Kind::of(frame[8])?);
    let payload = at + FRAME..(at + FRAME).checked_add(length)?;
    if length > PAYLOAD_LIMIT || word(frame, 4) != number || payload.end.checked_add(4)? > bytes.len() {
        return None;
    }
    (crc32fast::hash(&bytes[at..payload.end]) == word(bytes, payload.end)).then_some((kind, payload))
}

/// Whether a whole record with at least this number begins at `start` or later.
fn goes_on(bytes: &[u8], start: usize, number: u32) -> bool {
    // Bytes that look like records cost the time of checking them; when that is too much, they may well be some.
    let mut budget = 4 * bytes.len();
    for at in start..bytes.len().saturating_sub(FRAME) {
        let (length, found) = (word(bytes, at) as usize, word(bytes, at + 4));
        if found < number || Kind::of(bytes[at + 8]).is_none() || length > bytes.len() - at {
            continue;
        }
        if record(bytes, at, found).is_some() {
            return true;
        }
        match budget.checked_sub(length) {
            Some(left) => budget = left,
            None => return true,
        }
    }
    false
}

/// Puts a record at the end of `buffer`.
fn frame(buffer: &mut Vec<u8>, number: u32, kind: Kind, payload: &[u8]) {
    let start = buffer.len();
    buffer.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    buffer.extend_from_slice(&number.to_le_bytes());
    buffer.push(kind as u8);
    buffer.extend_from_slice(payload);
    let sum = crc32fast::hash(&buffer[start..]);
    buffer.extend_from_slice(&sum.to_le_bytes());
}

/// A log that is written.
pub(super) struct Writer {
    file: Box<dyn DiskFile>,
    /// Bytes that are whole records.
    length: u64,
    number: u32,
    /// Whether half a record may lie behind them.
    torn: bool,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("length", &self.length).field("number", &self.number).finish_non_exhaustive()
    }
}

impl Writer {
    /// Begins a log. There is none until its first record is whole.
    pub(super) fn create(disk: &Arc<dyn Disk>, path: &Path, begin: &[u8]) -> io::Result<Self> {
        let mut start = MAGIC.to_vec();
        start.extend_from_slice(&VERSION.to_le_bytes());
        frame(&mut start, 0, Kind::Begin, begin);
        crate::disk::replace(&**disk, path, |file| file.write_all(&start))?;
        Self::open(disk, path, start.len() as u64, 1)
    }

    /// Goes on behind `length` bytes, which are `number` records. Whatever follows is cut off.
    pub(super) fn open(disk: &Arc<dyn Disk>, path: &Path, length: u64, number: u32) -> io::Result<Self> {
        let mut file = disk.append(path)?;
        file.truncate(length)?;
        Ok(Self { file, length, number, torn: false, buffer: Vec::new() })
    }

    /// Appends a record; or, on an error, nothing. Allocates nothing for records that are not longer than earlier ones.
    pub(super) fn append(&mut self, kind: Kind, payload: &[u8]) -> io::Result<()> {
        if payload.len() > PAYLOAD_LIMIT || self.length + payload.len() as u64 > FILE_LIMIT {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the log is too long; begin another session"));
        }
        if self.torn {
            self.file.truncate(self.length)?;
            self.torn = false;
        }
        self.buffer.clear();
        frame(&mut self.buffer, self.number, kind, payload);
        if let Err(error) = self.file.write_all(&self.buffer) {
            // A reader would cut it off as well, but only if nothing comes after it.
            self.torn = self.file.truncate(self.length).is_err();
            return Err(error);
        }
        self.length += self.buffer.len() as u64;
        self.number += 1;
        Ok(())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk;

    fn log(payloads: &[&[u8]]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut writer = Writer::create(&disk::real(), &path, b"{}").unwrap();
        payloads.iter().for_each(|payload| writer.append(Kind::Tokens, payload).unwrap());
        (folder, path)
    }

    fn payloads(records: &Records) -> Vec<Vec<u8>> {
        records.iter().skip(1).map(|(_, payload, _)| payload.to_vec()).collect()
    }

    /// These bytes are in people's files: another result is another version of the format.
    #[test]
    fn the_format_is_pinned() {
        let (_folder, path) = log(&[&300u32.to_le_bytes()]);
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(bytes[..12], *b"ANEMSLOG\x01\0\0\0");
        assert_eq!(bytes[12..23], *b"\x02\0\0\0\0\0\0\0\x01{}");
        assert_eq!(bytes[27..], *b"\x04\0\0\0\x01\0\0\0\x03\x2c\x01\0\0\x36\x38\x30\x74");
    }

    const THREE: [&[u8]; 3] = [b"one", b"", b"three"];

    #[test]
    fn records_come_back() {
        let (_folder, path) = log(&THREE);
        let records = Records::read(&path).unwrap();
        assert_eq!(payloads(&records), THREE);
        assert_eq!((records.rest(), records.damaged, records.count()), (0, false, 4));
    }

    #[test]
    fn a_torn_tail_of_any_length_is_cut_and_the_log_goes_on() {
        let (_folder, path) = log(&THREE);
        let whole = std::fs::read(&path).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for length in START..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let records = Records::read(&path).unwrap();
            let found = payloads(&records);
            assert!(!records.damaged && THREE.iter().zip(&found).all(|(a, b)| a == b), "{length}");
            seen.insert(records.count());
            let (end, count) = (records.end as u64, records.count());
            Writer::open(&disk::real(), &path, end, count).unwrap().append(Kind::Tokens, b"more").unwrap();
            let again = Records::read(&path).unwrap();
            assert_eq!((again.rest(), again.count()), (0, count + 1));
            assert_eq!(again.iter().last().unwrap().1, b"more");
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let (_folder, path) = log(&THREE);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(&path, &bytes).unwrap();
            match Records::read(&path) {
                Err(KeepError::NotALog) => assert!(at < 8),
                Err(KeepError::Version { .. }) => assert!((8..12).contains(&at)),
                Err(other) => panic!("{other}"),
                Ok(records) => {
                    assert!(at >= 12 && records.count() < 4 && records.rest() > 0, "byte {at}");
                    // In the last record it can't be told from a torn one.
                    let last = whole.len() - FRAME - 5 - 4;
                    assert_eq!(records.damaged, at < last, "byte {at}");
                }
            }
        }
    }
}
