//! Records in a file: framed, numbered, checked.
//!
//! `docs/sessions.md` describes the format.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::Begin;
use crate::disk::{Disk, DiskFile};
use crate::kept::KeepError;

/// The first bytes of every log, and the version of its format.
const MAGIC: &[u8; 8] = b"ANEMSLOG";
const VERSION: u32 = 1;
/// The version of this build, as the first record has it.
pub(crate) const BUILD: &str = env!("CARGO_PKG_VERSION");
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
    /// Those that follow on each other from the beginning, then those that were found behind damaged ones.
    places: Vec<Place>,
    /// How many of them are of the first kind.
    whole: u32,
    /// Where these end.
    pub(super) end: usize,
    /// Whether something in between, or the beginning, was damaged.
    pub(super) damaged: bool,
    /// Whether another log begins behind them.
    pub(super) another: bool,
}

/// What comes next in a damaged log.
enum Found {
    Record(Place),
    /// The beginning of another log, or a record of one.
    Another,
}

struct Place {
    kind: Kind,
    number: u32,
    payload: Range<usize>,
}

/// A record that was read.
pub(super) struct Record<'r> {
    pub(super) kind: Kind,
    pub(super) number: u32,
    pub(super) payload: &'r [u8],
    /// Where in the file it begins.
    pub(super) offset: usize,
}

impl Records {
    /// Reads a log. What is no good record is told, not refused, as long as there is one.
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
        Self::of(bytes)
    }

    fn of(bytes: Vec<u8>) -> Result<Self, KeepError> {
        if bytes.is_empty() {
            return Err(KeepError::Empty);
        }
        let headed = is_headed(&bytes)?;
        let (mut places, mut end) = (Vec::new(), START.min(bytes.len()));
        while let Some((kind, payload)) = record(&bytes, end, places.len() as u32) {
            end = payload.end + 4;
            places.push(Place { kind, number: places.len() as u32, payload });
        }
        // A killed process leaves half a record at most, and nothing after it.
        let whole = places.len() as u32;
        let (mut from, mut least) = (if headed || whole > 0 { end } else { 0 }, Some(whole));
        // Bytes that look like records cost the time of checking them.
        let mut budget = 4 * bytes.len();
        let mut another = false;
        while let Some(number) = least.filter(|_| !another)
            && let Some(found) = search(&bytes, from, number, !places.is_empty(), &mut budget)
        {
            match found {
                Found::Record(place) => {
                    (from, least) = (place.payload.end + 4, place.number.checked_add(1));
                    places.push(place);
                }
                Found::Another => another = true,
            }
        }
        if places.is_empty() {
            let begun = bytes.iter().zip(MAGIC).all(|(a, b)| a == b);
            let is_ours = begun || bytes.iter().all(|&byte| byte == 0);
            return Err(if is_ours { KeepError::NothingLeft } else { KeepError::NotALog });
        }
        let damaged = !headed || places.len() as u32 > whole || budget == 0;
        Ok(Self { bytes, places, whole, end, damaged, another })
    }

    /// The records, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Record<'_>> {
        self.places.iter().map(|Place { kind, number, payload }| Record {
            kind: *kind,
            number: *number,
            payload: &self.bytes[payload.clone()],
            offset: payload.start - FRAME,
        })
    }

    /// Bytes behind the last record.
    pub(super) fn rest(&self) -> usize {
        self.tail().0.len()
    }

    /// Whether these are no more than a kill can have left.
    pub(super) fn is_torn(&self) -> bool {
        let (tail, number) = self.tail();
        !self.another && is_torn(tail, number)
    }

    /// What is behind the last record, and the number that the next one would have.
    fn tail(&self) -> (&[u8], u32) {
        let last = self.places.last().map(|last| (last.payload.end + 4, last.number.saturating_add(1)));
        let (end, number) = last.unwrap_or((self.end, 0));
        (&self.bytes[end..], number)
    }

    /// How many records follow on each other from the beginning.
    pub(super) fn count(&self) -> u32 {
        self.whole
    }
}

/// Whether the first bytes are those of a log of this version.
///
/// # Errors
/// If they are those of another version, and nothing shows that they were damaged.
fn is_headed(bytes: &[u8]) -> Result<bool, KeepError> {
    if !bytes.starts_with(MAGIC) || bytes.len() < START {
        return Ok(false);
    }
    let found = word(bytes, 8);
    if found == VERSION {
        return Ok(true);
    }
    let begin = record(bytes, START, 0).filter(|(kind, _)| *kind == Kind::Begin);
    let begin = begin.and_then(|(_, payload)| serde_json::from_slice::<Begin>(&bytes[payload]).ok());
    // What this build or an earlier one wrote has no later version.
    let ours = begin.is_some_and(|begin| release(&begin.build).is_some_and(|it| Some(it) <= release(BUILD)));
    if ours { Ok(false) } else { Err(KeepError::Version { found, known: VERSION }) }
}

/// The numbers of a version.
fn release(version: &str) -> Option<[u64; 3]> {
    let numbers: Result<Vec<u64>, _> = version.split('.').map(str::parse).collect();
    numbers.ok()?.try_into().ok()
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

/// The first whole record that begins at `start` or later; one with a lower number than this is another log's. Where
/// records came before, so is what follows on a second header. What looks like a record and is none costs its length of
/// the budget.
fn search(bytes: &[u8], start: usize, number: u32, is_begun: bool, budget: &mut usize) -> Option<Found> {
    for at in start..bytes.len().saturating_sub(FRAME) {
        if is_begun && bytes[at..].strip_prefix(MAGIC).is_some_and(|rest| rest.starts_with(&VERSION.to_le_bytes())) {
            return Some(Found::Another);
        }
        let (length, found) = (word(bytes, at) as usize, word(bytes, at + 4));
        if Kind::of(bytes[at + 8]).is_none() || length > bytes.len() - at {
            continue;
        }
        if let Some((kind, payload)) = record(bytes, at, found) {
            let place = Place { kind, number: found, payload };
            return Some(if found < number { Found::Another } else { Found::Record(place) });
        }
        *budget = budget.saturating_sub(length);
        if *budget == 0 {
            return None;
        }
    }
    None
}

/// Whether these bytes can be the beginning, and no more, of the record with this number.
fn is_torn(tail: &[u8], number: u32) -> bool {
    let is_number = tail.iter().skip(4).zip(number.to_le_bytes()).all(|(&a, b)| a == b);
    if tail.len() < FRAME || !is_number {
        return is_number;
    }
    let length = word(tail, 0) as usize;
    if Kind::of(tail[8]).is_none() || length > PAYLOAD_LIMIT || length + FRAME + 4 <= tail.len() {
        return false;
    }
    // A whole record of which the length alone is wrong.
    let Some(end) = tail.len().checked_sub(4).filter(|&end| end >= FRAME) else { return true };
    let mut sum = crc32fast::Hasher::new();
    sum.update(&((end - FRAME) as u32).to_le_bytes());
    sum.update(&tail[4..end]);
    sum.finalize() != word(tail, end)
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
    /// Begins a log with these records. There is none until they are whole; one that is there is replaced.
    pub(super) fn create(disk: &Arc<dyn Disk>, path: &Path, records: &[(Kind, &[u8])]) -> io::Result<Self> {
        let mut start = MAGIC.to_vec();
        start.extend_from_slice(&VERSION.to_le_bytes());
        for (number, (kind, payload)) in (0..).zip(records) {
            fits(start.len() as u64, payload)?;
            frame(&mut start, number, *kind, payload);
        }
        crate::disk::replace(&**disk, path, |file| file.write_all(&start))?;
        Self::open(disk, path, start.len() as u64, records.len() as u32)
    }

    /// Goes on behind `length` bytes, which are `number` records. Whatever follows is cut off.
    pub(super) fn open(disk: &Arc<dyn Disk>, path: &Path, length: u64, number: u32) -> io::Result<Self> {
        let mut file = disk.append(path)?;
        file.truncate(length)?;
        Ok(Self { file, length, number, torn: false, buffer: Vec::new() })
    }

    /// Appends a record; or, on an error, nothing. Allocates nothing for records that are not longer than earlier ones.
    pub(super) fn append(&mut self, kind: Kind, payload: &[u8]) -> io::Result<()> {
        fits(self.length, payload)?;
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

/// Refuses what a reader would not take.
fn fits(length: u64, payload: &[u8]) -> io::Result<()> {
    if payload.len() > PAYLOAD_LIMIT || length + payload.len() as u64 > FILE_LIMIT {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the log is too long; begin another session"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::disk;

    fn log(payloads: &[&[u8]]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut writer = Writer::create(&disk::real(), &path, &[(Kind::Begin, b"{}")]).unwrap();
        payloads.iter().for_each(|payload| writer.append(Kind::Tokens, payload).unwrap());
        (folder, path)
    }

    fn payloads(records: &Records) -> Vec<Vec<u8>> {
        records.iter().skip(1).map(|record| record.payload.to_vec()).collect()
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
        for length in START + FRAME + 2 + 4..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let records = Records::read(&path).unwrap();
            let found = payloads(&records);
            assert!(!records.damaged && records.is_torn() && THREE.iter().zip(&found).all(|(a, b)| a == b), "{length}");
            seen.insert(records.count());
            let (end, count) = (records.end as u64, records.count());
            Writer::open(&disk::real(), &path, end, count).unwrap().append(Kind::Tokens, b"more").unwrap();
            let again = Records::read(&path).unwrap();
            assert_eq!((again.rest(), again.count()), (0, count + 1));
            assert_eq!(again.iter().last().unwrap().payload, b"more");
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
        // Of what is shorter nothing is left; an empty file is one in which nothing was ever said.
        for length in 0..START + FRAME + 2 + 4 {
            std::fs::write(&path, &whole[..length]).unwrap();
            match Records::read(&path) {
                Err(KeepError::Empty) => assert_eq!(length, 0),
                Err(KeepError::NothingLeft) => assert!(length > 0),
                _ => panic!("{length}"),
            }
        }
    }

    #[test]
    fn a_header_that_is_damaged_is_told_from_that_of_a_later_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for (build, is_ours) in [(BUILD, true), ("0.0.1", true), ("999.0.0", false), ("next", false)] {
            let json = json!({"build": build, "package": null, "tokenizer": "", "vocabulary": 1}).to_string();
            drop(Writer::create(&disk::real(), &path, &[(Kind::Begin, json.as_bytes())]).unwrap());
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[8] = 2;
            std::fs::write(&path, bytes).unwrap();
            match Records::read(&path) {
                Ok(records) => assert!(is_ours && records.damaged && records.count() == 1, "{build}"),
                Err(error) => assert!(!is_ours && matches!(error, KeepError::Version { found: 2, .. }), "{build}"),
            }
        }
        for bytes in [&b"not a log, but longer than twelve bytes"[..], b"x"] {
            std::fs::write(&path, bytes).unwrap();
            assert!(matches!(Records::read(&path), Err(KeepError::NotALog)));
        }
        std::fs::write(&path, [0; 100]).unwrap();
        assert!(matches!(Records::read(&path), Err(KeepError::NothingLeft)));
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let (_folder, path) = log(&THREE);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(&path, &bytes).unwrap();
            let records = match Records::read(&path) {
                // The first record does not say that it is of this build.
                Err(KeepError::Version { .. }) if (8..12).contains(&at) => continue,
                records => records.unwrap(),
            };
            // In the last record it can't be told from a torn one.
            let last = whole.len() - FRAME - 5 - 4;
            assert_eq!(records.damaged, at < last, "byte {at}");
            // But it is more than a kill leaves.
            assert_eq!(records.is_torn(), at < last, "byte {at}");
            // Of the header nothing depends; of the records one is lost, and what comes after it is there.
            let numbers: Vec<u32> = records.iter().map(|record| record.number).collect();
            let lost = [27, 43, 56, whole.len()].iter().position(|&end| at >= 12 && at < end).map(|n| n as u32);
            assert_eq!(numbers, (0..4).filter(|&n| Some(n) != lost).collect::<Vec<_>>(), "byte {at}");
            assert_eq!(records.count(), lost.unwrap_or(4), "byte {at}");
        }
    }
}
