//! Packed weights on disk: a second start reads them instead of packing them again.
//!
//! ```text
//! magic (16)  identity (32)  number of buffers (8)  bytes of the buffers (8)  checksum of what follows (8)
//! for each buffer: key (4 × 8)  index (8)  start (8)  length (8)
//! zeros up to a multiple of 64
//! the buffers, each at a multiple of 64
//! ```
//!
//! All numbers are little-endian. The identity is a digest of the package's own digest, the instruction set, the version of
//! the packing and of this library: a file of another one is packed anew. Where that can be, the file is mapped, and summed
//! there: mapped files lie in small pages, which cost a third of the bandwidth for as long as they are used, so after the first
//! call they are moved into memory of our own ([`Arena::settle`]). Elsewhere it is read. A file is never written to once it has
//! its name.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anemone_kernels::Isa;
use anemone_kernels::buffer::{ALIGN, Arena, PACKING, Saved};
use sha2::{Digest, Sha256};

use crate::files;
use crate::packed::PackedFolder;

const MAGIC: &[u8; 16] = b"anemone packed 3";
const HEADER: usize = 16 + 32 + 8 + 8 + 8;
const ENTRY: usize = 7 * 8;
/// The most buffers that a file may have.
const MAX_BUFFERS: usize = 1 << 20;

/// Where the packed weights of one package are kept, and what they must be made of.
#[derive(Debug)]
pub(super) struct PackedFile {
    folder: PackedFolder,
    path: PathBuf,
    identity: [u8; 32],
}

impl PackedFile {
    /// The file for the package of digest `owner`, in `folder`.
    pub(super) fn new(folder: &PackedFolder, owner: &[u8; 32]) -> Self {
        let isa = Isa::detect().name();
        let mut digest = Sha256::new_with_prefix(owner);
        digest.update(format!("{isa} {PACKING} {}", env!("CARGO_PKG_VERSION")));
        Self { path: folder.file(owner, isa), folder: folder.clone(), identity: digest.finalize().into() }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What was kept, if it is there and whole. What is wrong with it otherwise is told to the log.
    pub(super) fn read(&self) -> Option<Arena> {
        let begin = std::time::Instant::now();
        match self.try_read() {
            Ok(arena) => {
                // Told by its time that it is still used. If that fails, it is made again some day.
                let _untold = files::open(&self.path).and_then(|file| file.set_modified(SystemTime::now()));
                tracing::debug!("packed weights read from {} in {:?}", self.path.display(), begin.elapsed());
                Some(arena)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::info!("{}: {error}; the weights are packed anew", self.path.display());
                None
            }
        }
    }

    fn try_read(&self) -> io::Result<Arena> {
        let wrong = |problem: &str| io::Error::new(io::ErrorKind::InvalidData, problem.to_owned());
        let mut file = files::open(&self.path)?;
        let length = file.metadata()?.len();
        let mut header = [0; HEADER];
        file.read_exact(&mut header).map_err(|_| wrong("it is cut short"))?;
        let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        if header[..16] != *MAGIC || header[16..48] != self.identity {
            return Err(wrong("it was made by another version, or for another package or processor"));
        }
        let (count, bytes, sum) = (number(48), number(56), number(64));
        let count = usize::try_from(count).ok().filter(|&n| n <= MAX_BUFFERS);
        let count = count.ok_or_else(|| wrong("it claims to hold too many buffers"))?;
        let begin = begin(count);
        if (begin as u64).checked_add(bytes) != Some(length) {
            return Err(wrong("it is cut short, or too long"));
        }
        let bytes = usize::try_from(bytes).map_err(|_| wrong("it is too large for this machine"))?;
        let mut table = vec![0; begin - HEADER];
        file.read_exact(&mut table)?;
        let mut all = Checksum::default();
        all.add(&table);
        table.truncate(count * ENTRY);
        let saved: Vec<Saved> =
            table.chunks_exact(ENTRY).map(entry).collect::<Option<_>>().ok_or_else(|| wrong("its table"))?;
        #[cfg(target_os = "linux")]
        return Arena::map(&saved, &file, (begin, bytes), |mapped| {
            mapped.chunks(PIECE).for_each(|piece| all.add(piece));
            if all.sum() == sum { Ok(()) } else { Err(wrong("its checksum does not fit")) }
        });
        #[cfg(not(target_os = "linux"))]
        Arena::restore(&saved, bytes, |into| {
            // Checked piece by piece, while it is in the processor's caches.
            for piece in into.chunks_mut(PIECE) {
                file.read_exact(piece)?;
                all.add(piece);
            }
            if all.sum() == sum { Ok(()) } else { Err(wrong("its checksum does not fit")) }
        })
    }

    /// Keeps what is packed now. A failure is told to the log: the next start packs again.
    pub(super) fn write(&self, arena: &Arena) {
        match self.try_write(arena) {
            Ok(bytes) => tracing::debug!("packed weights kept in {}: {bytes} bytes", self.path.display()),
            Err(error) => tracing::info!("{}: packed weights are not kept: {error}", self.path.display()),
        }
    }

    fn try_write(&self, arena: &Arena) -> io::Result<u64> {
        let mut file = self.folder.begin()?;
        let written = arena.save(|all| -> io::Result<u64> {
            let bytes = all.last().map_or(0, |(s, b)| s.start + b.len());
            let mut table = Vec::with_capacity(begin(all.len()) - HEADER);
            for (s, _) in all {
                let numbers = [s.index, s.start, s.len].map(|n| n as u64);
                s.key.iter().chain(&numbers).for_each(|n| table.extend(n.to_le_bytes()));
            }
            table.resize(begin(all.len()) - HEADER, 0);
            let mut sum = Checksum::default();
            sum.add(&table);
            let out = file.as_file_mut();
            out.seek(SeekFrom::Start(HEADER as u64))?;
            out.write_all(&table)?;
            // The same pieces as when it is read.
            let mut piece = Vec::with_capacity(PIECE + ALIGN);
            let mut flush = |piece: &mut Vec<u8>, least: usize| -> io::Result<()> {
                while piece.len() > least {
                    let n = piece.len().min(PIECE);
                    sum.add(&piece[..n]);
                    out.write_all(&piece[..n])?;
                    piece.drain(..n);
                }
                Ok(())
            };
            let mut at = 0;
            for (s, bytes) in all {
                piece.resize(piece.len() + s.start - at, 0);
                piece.extend_from_slice(bytes);
                at = s.start + s.len;
                flush(&mut piece, PIECE - 1)?;
            }
            flush(&mut piece, 0)?;
            let mut header = [MAGIC.as_slice(), &self.identity].concat();
            [all.len() as u64, bytes as u64, sum.sum()].iter().for_each(|n| header.extend(n.to_le_bytes()));
            out.seek(SeekFrom::Start(0))?;
            out.write_all(&header)?;
            Ok((HEADER + table.len() + bytes) as u64)
        })?;
        // Renamed when it is whole. Not synced: a file that a power cut left half written has another checksum.
        file.persist(&self.path).map_err(|e| e.error)?;
        Ok(written)
    }
}

/// Bytes that are read and summed at a time.
const PIECE: usize = 1 << 20;

/// Where the first of so many buffers begins.
fn begin(count: usize) -> usize {
    (HEADER + count * ENTRY).next_multiple_of(ALIGN)
}

fn entry(bytes: &[u8]) -> Option<Saved> {
    let number = |i: usize| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().expect("eight bytes"));
    let size = |i: usize| usize::try_from(number(i)).ok();
    Some(Saved { key: [0, 1, 2, 3].map(number), index: size(4)?, start: size(5)?, len: size(6)? })
}

/// Tells bytes that changed by accident; fast, and nothing against malice.
#[derive(Default)]
struct Checksum([u64; 4], u64);

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let (lines, rest) = bytes.as_chunks::<32>();
        for line in lines {
            for (s, word) in self.0.iter_mut().zip(line.as_chunks::<8>().0) {
                *s = (*s ^ u64::from_le_bytes(*word)).wrapping_mul(ODD).rotate_left(29);
            }
        }
        for b in rest {
            self.1 = (self.1 ^ u64::from(*b)).wrapping_mul(ODD).rotate_left(29);
        }
    }

    fn sum(&self) -> u64 {
        let mut all = Self::default();
        for s in self.0 {
            all.1 = (all.1 ^ s).wrapping_mul(0x517c_c1b7_2722_0a95).rotate_left(31);
        }
        all.1 ^ self.1
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use anemone_kernels::buffer::Buffer;

    use super::*;

    fn make(arena: &Arc<Arena>, keys: std::ops::Range<u64>, calls: &mut usize) -> Vec<Buffer> {
        keys.map(|k| {
            arena.scope(Some([k, 0, 0, 0]), || {
                Buffer::filled(300_000 + k as usize, |b| {
                    *calls += 1;
                    b.iter_mut().enumerate().for_each(|(i, b)| *b = (i as u64 * 31 + k) as u8);
                })
            })
        })
        .collect()
    }

    #[test]
    fn a_second_start_reads_and_damage_packs_anew() {
        let folder = tempfile::tempdir().unwrap();
        let kept = PackedFile::new(&PackedFolder::new(folder.path().join("packed")), &[7; 32]);
        assert!(kept.read().is_none(), "nothing is there yet");
        let (arena, mut calls) = (Arc::new(Arena::default()), 0);
        let first = make(&arena, 0..9, &mut calls);
        kept.write(&arena);
        let again = Arc::new(kept.read().expect("it was written"));
        let second = make(&again, 0..9, &mut calls);
        assert_eq!(calls, 9);
        assert!(first.iter().zip(&second).all(|(a, b)| a[..] == b[..]));
        again.settle().unwrap();
        assert!(first.iter().zip(&second).all(|(a, b)| a[..] == b[..]));
        assert_eq!(fs::read_dir(folder.path().join("packed")).unwrap().count(), 1, "no leftovers");

        assert!(
            PackedFile { folder: kept.folder.clone(), path: kept.path.clone(), identity: [1; 32] }.try_read().is_err(),
            "another package"
        );
        let whole = fs::read(&kept.path).unwrap();
        for cut in [0, 10, HEADER, HEADER + 100, whole.len() - 1] {
            fs::write(&kept.path, &whole[..cut]).unwrap();
            assert!(kept.read().is_none(), "cut at {cut}");
        }
        for at in [0, 20, 50, 60, 66, HEADER + 3, HEADER + 9 * ENTRY, whole.len() - 1, 1_500_000] {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            fs::write(&kept.path, &bytes).unwrap();
            assert!(kept.read().is_none(), "flipped at {at}");
        }
        fs::write(&kept.path, &whole).unwrap();
        assert!(kept.read().is_some());
    }
}
