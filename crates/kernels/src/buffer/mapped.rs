//! A file that is mapped, to be read at once, and moved into huge pages later, where it lies and while others read it.
//!
//! Copying 90 MB into huge pages takes longer than all else that a start has to do, and until the first token is out small
//! pages do: the file's own, of which the system has no second copy. Afterwards, a copy of 2 MB at a time takes their place
//! (`mremap`, which is a single step for whoever reads there).

#![allow(unsafe_code, reason = "pages of a file make way for others that hold the same bytes")]

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::Mutex;

use rustix::mm::{self, Advice, MapFlags, MremapFlags, ProtFlags};

use super::arena::HUGE;
use super::round_up;

/// A range of addresses that nobody else uses, beginning at a multiple of a huge page.
struct Range {
    start: NonNull<u8>,
    len: usize,
}

impl Range {
    /// As many bytes, of anonymous memory that was never touched.
    fn new(len: usize, access: ProtFlags) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the system chooses the place.
        let all = unsafe { mm::mmap_anonymous(std::ptr::null_mut(), len + HUGE, access, flags)? };
        let all = NonNull::new(all.cast::<u8>()).ok_or_else(|| io::Error::other("memory at address 0"))?;
        let skip = all.addr().get().wrapping_neg() % HUGE;
        // SAFETY: `skip` is less than `HUGE`.
        let start = unsafe { all.add(skip) };
        let mut range = Self { start: all, len: len + HUGE };
        range.keep(skip..skip + len)?;
        debug_assert_eq!((range.start, range.len), (start, len));
        Ok(range)
    }

    /// Gives back all but a part.
    fn keep(&mut self, part: std::ops::Range<usize>) -> io::Result<()> {
        assert!(part.start <= part.end && part.end <= self.len, "a part of the range");
        let after = self.len - part.end;
        // SAFETY: both pieces are of this range, and nothing refers to them.
        unsafe {
            if after > 0 {
                mm::munmap(self.start.add(part.end).as_ptr().cast(), after)?;
                self.len = part.end;
            }
            if part.start > 0 {
                mm::munmap(self.start.as_ptr().cast(), part.start)?;
                (self.start, self.len) = (self.start.add(part.start), self.len - part.start);
            }
        }
        Ok(())
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: the range is its owner's alone. If it is refused, the addresses stay taken.
        let _refused = unsafe { mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// The first bytes of a file.
pub(super) struct Mapped {
    range: Range,
    len: usize,
    settled: Mutex<Settled>,
}

/// How far bytes were moved.
struct Settled {
    /// How many of them lie in memory of our own.
    len: usize,
    /// Where the others are read: through the mapping, a file that somebody cut short would end the process. None if all are
    /// moved.
    file: Option<File>,
}

// SAFETY: the bytes are only read, and which pages they lie in is changed under a lock.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps the first `len` bytes of a file. Nobody may write to the file or cut it short while it is mapped; replacing it is
    /// fine.
    ///
    /// # Errors
    /// Those of the system, and a file that has not as many bytes.
    pub(super) fn new(file: &File, len: usize) -> io::Result<Self> {
        if len == 0 || len as u64 > file.metadata()?.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is shorter"));
        }
        let range = Range::new(round_up(len, HUGE), ProtFlags::empty())?;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::POPULATE;
        // SAFETY: the range was made just now, and nobody else knows of it.
        unsafe { mm::mmap(range.start.as_ptr().cast(), len, ProtFlags::READ, flags, file, 0)? };
        Ok(Self { range, len, settled: Mutex::new(Settled { len: 0, file: Some(file.try_clone()?) }) })
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.range.start
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: they are mapped as long as `self` lives, and stay what they are.
        unsafe { std::slice::from_raw_parts(self.range.start.as_ptr(), self.len) }
    }

    /// Moves the bytes into huge pages, where the system gives them, and small ones where they do not fill one. Others may read
    /// them meanwhile. If it fails on the way, the rest stays in the file's pages.
    pub(super) fn settle(&self) -> io::Result<()> {
        let Ok(mut settled) = self.settled.try_lock() else { return Ok(()) };
        while let Some(file) = &settled.file {
            let piece = (self.len - settled.len).min(HUGE);
            let mut fresh = Range::new(HUGE, ProtFlags::READ | ProtFlags::WRITE)?;
            if piece == HUGE {
                // SAFETY: the range was made just now. A system without huge pages works with small ones.
                let _small = unsafe { mm::madvise(fresh.start.as_ptr().cast(), HUGE, Advice::LinuxHugepage) };
            }
            // SAFETY: the range was made just now, may be written, is as long, and holds zeros.
            let bytes = unsafe { std::slice::from_raw_parts_mut(fresh.start.as_ptr(), piece) };
            file.read_exact_at(bytes, settled.len as u64)?;
            fresh.keep(0..round_up(piece, rustix::param::page_size()))?;
            // SAFETY: both ranges are our own. What goes holds the same bytes as what takes its place, and the system lets
            // nobody see anything between the two.
            unsafe {
                let to = self.range.start.add(settled.len).as_ptr().cast();
                mm::mremap_fixed(fresh.start.as_ptr().cast(), fresh.len, fresh.len, MremapFlags::MAYMOVE, to)?;
            }
            // It lies elsewhere now.
            std::mem::forget(fresh);
            settled.len += piece;
            if settled.len == self.len {
                settled.file = None;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn file(len: usize) -> (std::path::PathBuf, Vec<u8>) {
        let path = std::env::temp_dir().join(format!("anemone-mapped-{}-{len}", std::process::id()));
        let bytes: Vec<u8> = (0..len).map(|i| (i * 31 + i / 4096) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        (path, bytes)
    }

    #[test]
    fn bytes_stay_what_they_are_while_they_move() {
        let (path, bytes) = file(3 * HUGE + 70_001);
        let mapped = Mapped::new(&File::open(&path).unwrap(), bytes.len()).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(mapped.start().addr().get() % HUGE, 0);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let read = || {
                let mut times = 0;
                while !done.load(Ordering::Relaxed) || times == 0 {
                    assert!(mapped.bytes() == bytes);
                    times += 1;
                }
            };
            (0..3).for_each(|_| drop(scope.spawn(read)));
            mapped.settle().unwrap();
            done.store(true, Ordering::Relaxed);
        });
        assert!(mapped.bytes() == bytes);
        assert_eq!(mapped.settled.lock().unwrap().len, bytes.len());
        mapped.settle().unwrap();
    }

    #[test]
    fn settled_bytes_are_no_longer_those_of_the_file() {
        let (path, bytes) = file(HUGE + 1);
        let mapped = Mapped::new(&File::open(&path).unwrap(), bytes.len()).unwrap();
        mapped.settle().unwrap();
        std::fs::write(&path, b"short").unwrap();
        assert!(mapped.bytes() == bytes);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_that_was_cut_short_stops_the_move_and_nothing_else() {
        let (path, bytes) = file(2 * HUGE + 1);
        let mapped = Mapped::new(&File::open(&path).unwrap(), bytes.len()).unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(HUGE as u64 + 5).unwrap();
        assert_eq!(mapped.settle().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(mapped.settled.lock().unwrap().len, HUGE);
        assert!(mapped.bytes()[..HUGE] == bytes[..HUGE]);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn shorter_files_are_refused() {
        let (path, bytes) = file(1000);
        let open = File::open(&path).unwrap();
        assert!(Mapped::new(&open, bytes.len() + 1).is_err());
        assert!(Mapped::new(&open, 0).is_err());
        assert_eq!(Mapped::new(&open, 1000).unwrap().bytes(), bytes);
        std::fs::remove_file(&path).unwrap();
    }
}
