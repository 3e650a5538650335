//! Memory for all packed weights of a model: few large regions in huge pages, where the system gives them.
//!
//! A page of 4 KiB costs a look-up for every 64 cache lines; in a virtual machine that is a third of the bandwidth. Huge pages
//! are given to anonymous memory alone, and often only to who asks for them before the first touch; so a file that is mapped
//! does for a start, and is moved into them when there is time ([`Arena::settle`]).
//!
//! What lies in an arena is written once, by who asked for it, and only read afterwards. So an arena can be saved, and a
//! saved one hands out what it holds instead of having it made again.

#![allow(unsafe_code, reason = "parts of one region have different owners")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::MmapMut;

use super::{ALIGN, round_up};

/// The size of a huge page, on all systems that matter here.
pub(super) const HUGE: usize = 2 << 20;
/// The size of the first region; each next one is twice as large, up to [`LARGEST`].
const FIRST: usize = 2 * HUGE;
const LARGEST: usize = 32 * HUGE;
/// Smaller buffers stay on the heap.
const SMALLEST: usize = 16 << 10;

/// What a buffer is known by when an arena is saved and used again.
pub type Key = [u64; 4];

/// Memory for packed weights.
#[derive(Default)]
pub struct Arena {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    regions: Vec<Arc<Region>>,
    /// Bytes of the last region that are taken.
    used: usize,
    parts: HashMap<(Key, usize), Known>,
    /// Whether there is a part that is not in what the arena was restored from.
    new: bool,
}

/// A part with a key.
struct Known {
    part: Part,
    taken: bool,
}

/// One run of memory.
struct Region {
    start: NonNull<u8>,
    len: usize,
    held: Held,
}

/// What a region lies in.
enum Held {
    Memory {
        _map: MmapMut,
    },
    #[cfg(all(target_os = "linux", not(miri)))]
    File(super::mapped::Mapped),
}

// SAFETY: a region is plain memory; who may write which part of it is decided by `Inner::reserve`, under a lock.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Zeroed memory for `len` bytes, in huge pages where the system gives them.
    fn new(len: usize) -> io::Result<Self> {
        let len = round_up(len, HUGE);
        // Room to start at a multiple of the page's size.
        let mut map = MmapMut::map_anon(len + HUGE)?;
        #[cfg(target_os = "linux")]
        if let Err(error) = map.advise(memmap2::Advice::HugePage) {
            // A system without huge pages works with small ones.
            let _ = error;
        }
        let skip = map.as_ptr().addr().wrapping_neg() % HUGE;
        let start = NonNull::from(&mut map[skip..skip + len]).cast();
        Ok(Self { start, len, held: Held::Memory { _map: map } })
    }
}

/// A part of a region, written already.
#[derive(Clone)]
pub(super) struct Part {
    region: Arc<Region>,
    start: usize,
    len: usize,
}

impl Part {
    pub(super) fn bytes(&self) -> &[u8] {
        debug_assert!(self.start + self.len <= self.region.len);
        // SAFETY: the range lies in the region, which lives as long as `self`, and nobody writes it once a `Part` exists.
        unsafe { std::slice::from_raw_parts(self.region.start.add(self.start).as_ptr(), self.len) }
    }
}

/// One buffer as it is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saved {
    /// What it is known by.
    pub key: Key,
    /// How many buffers with the same key came before it.
    pub index: usize,
    /// Where its bytes begin in the saved bytes: a multiple of [`ALIGN`].
    pub start: usize,
    /// How many bytes it has.
    pub len: usize,
}

thread_local! {
    /// The arena that buffers made on this thread go to, and what they are known by.
    static SCOPE: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

struct Scope {
    arena: Arc<Arena>,
    key: Option<Key>,
    count: usize,
}

/// Puts the scope of before back, however the work in between ends.
struct Restore(Option<Scope>);

impl Drop for Restore {
    fn drop(&mut self) {
        SCOPE.replace(self.0.take());
    }
}

impl Arena {
    /// Calls `make`: buffers that it fills on this thread lie in this arena. With a key they are saved with it, and taken
    /// from it if it was restored with them.
    pub fn scope<T>(self: &Arc<Self>, key: Option<Key>, make: impl FnOnce() -> T) -> T {
        let scope = Scope { arena: Arc::clone(self), key, count: 0 };
        let _restore = Restore(SCOPE.replace(Some(scope)));
        make()
    }

    /// What must be saved to restore this arena, with the bytes of each.
    pub fn save<R>(&self, with: impl FnOnce(&[(Saved, &[u8])]) -> R) -> R {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> =
            inner.parts.iter().map(|(&(key, index), known)| (key, index, known.part.bytes())).collect();
        all.sort_by_key(|(key, index, _)| (*key, *index));
        let mut at = 0;
        let saved = all.into_iter().map(|(key, index, bytes)| {
            let start = at;
            at += round_up(bytes.len(), ALIGN);
            (Saved { key, index, start, len: bytes.len() }, bytes)
        });
        with(&saved.collect::<Vec<_>>())
    }

    /// An arena that has what was saved: `read` writes the saved bytes, `len` of them, into one region.
    ///
    /// # Errors
    /// Those of `read`, of the system, and buffers that do not lie in the bytes on their own.
    pub fn restore(saved: &[Saved], len: usize, read: impl FnOnce(&mut [u8]) -> io::Result<()>) -> io::Result<Self> {
        check(saved, len)?;
        let region = Region::new(len.max(1))?;
        // SAFETY: the region was made here, is zeroed, at least `len` long, and nobody else knows of it.
        read(unsafe { std::slice::from_raw_parts_mut(region.start.as_ptr(), len) })?;
        Ok(Self::of(saved, region, 0))
    }

    /// An arena that has what was saved where it lies in a file: its last `len` bytes, from `at` on, a multiple of [`ALIGN`].
    /// They are read from there until [`Arena::settle`]; `look` is shown them first. Nobody may write to the file or cut it
    /// short as long as that has not been done; replacing it is fine.
    ///
    /// # Errors
    /// As [`Arena::restore`]; those of `look`.
    #[cfg(all(target_os = "linux", not(miri)))]
    pub fn map(
        saved: &[Saved],
        file: &std::fs::File,
        (at, len): (usize, usize),
        look: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<Self> {
        check(saved, len)?;
        let all = at.checked_add(len).filter(|_| at.is_multiple_of(ALIGN));
        let all = all.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "saved buffers lie askew"))?;
        let mapped = super::mapped::Mapped::new(file, all)?;
        look(&mapped.bytes()[at..])?;
        let region = Region { start: mapped.start(), len: all, held: Held::File(mapped) };
        Ok(Self::of(saved, region, at))
    }

    /// Moves what was mapped into memory of our own, in huge pages where the system gives them. It may be read meanwhile, and no
    /// more than one huge page is there twice.
    ///
    /// # Errors
    /// Those of the system; what was not moved stays where it was.
    pub fn settle(&self) -> io::Result<()> {
        let regions = self.inner.lock().unwrap_or_else(PoisonError::into_inner).regions.clone();
        regions.iter().try_for_each(|region| match &region.held {
            Held::Memory { .. } => Ok(()),
            #[cfg(all(target_os = "linux", not(miri)))]
            Held::File(mapped) => mapped.settle(),
        })
    }

    /// What was saved, in a region that holds it from `at` on.
    fn of(saved: &[Saved], region: Region, at: usize) -> Self {
        let region = Arc::new(region);
        let known = |s: &Saved| {
            let part = Part { region: Arc::clone(&region), start: at + s.start, len: s.len };
            ((s.key, s.index), Known { part, taken: false })
        };
        let parts = saved.iter().map(known).collect();
        // The region is full: what is new goes to another one.
        let inner = Inner { used: region.len, parts, new: false, regions: vec![region] };
        Self { inner: Mutex::new(inner) }
    }

    /// Whether it holds something with a key that it was not restored with.
    pub fn is_new(&self) -> bool {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).new
    }

    /// Bytes of memory that its regions take, touched or not.
    pub fn reserved(&self) -> usize {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).regions.iter().map(|r| r.len).sum()
    }
}

/// Whether saved buffers lie in `len` bytes, one after the other.
fn check(saved: &[Saved], len: usize) -> io::Result<()> {
    let mut end = 0;
    for s in saved {
        let fits = s.start >= end && s.start.is_multiple_of(ALIGN) && s.start <= len && s.len <= len - s.start;
        if !fits {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "saved buffers overlap or lie outside"));
        }
        end = s.start + s.len;
    }
    Ok(())
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes reserved", self.reserved())
    }
}

impl Inner {
    /// A part that nobody else has, zeroed; nothing if the system gives no memory.
    fn reserve(&mut self, len: usize) -> Option<Part> {
        if self.regions.last().is_none_or(|r| r.len - self.used < len) {
            let next = (FIRST << self.regions.len().min(16)).min(LARGEST);
            self.regions.push(Arc::new(Region::new(len.max(next)).ok()?));
            self.used = 0;
        }
        let region = Arc::clone(self.regions.last()?);
        let start = self.used;
        self.used = round_up(start + len, ALIGN).min(region.len);
        Some(Part { region, start, len })
    }

    /// What is known by `key`, if it has this length and nobody has it yet.
    fn take(&mut self, key: (Key, usize), len: usize) -> Option<Part> {
        let known = self.parts.get_mut(&key).filter(|known| known.part.len == len && !known.taken)?;
        known.taken = true;
        Some(known.part.clone())
    }
}

/// A part of the arena of this thread's scope, filled; gives `fill` back if there is none, or no need for one.
pub(super) fn place<F: FnOnce(&mut [u8])>(len: usize, fill: F) -> Result<Part, F> {
    if len < SMALLEST {
        return Err(fill);
    }
    let scope = SCOPE.with_borrow_mut(|scope| {
        let scope = scope.as_mut()?;
        let index = scope.count;
        scope.count += 1;
        Some((Arc::clone(&scope.arena), scope.key.map(|key| (key, index))))
    });
    let Some((arena, key)) = scope else { return Err(fill) };
    let lock = || arena.inner.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(part) = key.and_then(|key| lock().take(key, len)) {
        return Ok(part);
    }
    let Some(part) = lock().reserve(len) else { return Err(fill) };
    // SAFETY: the range was reserved just now for this call alone, lies in the region, and no other reference to it exists
    // until this one has ended.
    fill(unsafe { std::slice::from_raw_parts_mut(part.region.start.add(part.start).as_ptr(), len) });
    if let Some(key) = key {
        let mut inner = lock();
        inner.new = true;
        inner.parts.entry(key).or_insert_with(|| Known { part: part.clone(), taken: true });
    }
    Ok(part)
}

#[cfg(test)]
#[cfg(not(miri))] // Miri has no anonymous maps.
mod tests {
    use super::super::Buffer;
    use super::*;

    const KEY: Key = [1, 2, 3, 4];

    fn made(arena: &Arc<Arena>, key: Option<Key>, len: usize, value: u8) -> Buffer {
        arena.scope(key, || {
            Buffer::filled(len, |bytes| {
                assert!(bytes.iter().all(|&b| b == 0));
                bytes.fill(value);
            })
        })
    }

    #[test]
    fn buffers_lie_apart_on_cache_lines() {
        let arena = Arc::new(Arena::default());
        let lengths = [SMALLEST, SMALLEST + 1, 3 * HUGE, 100_000, FIRST, LARGEST + 5, 77_777];
        let all: Vec<Buffer> = lengths.iter().enumerate().map(|(i, &n)| made(&arena, None, n, i as u8 + 1)).collect();
        for (i, (buffer, len)) in all.iter().zip(lengths).enumerate() {
            assert_eq!((buffer.len(), buffer.as_ptr().addr() % ALIGN), (len, 0));
            assert!(buffer.iter().all(|&b| b == i as u8 + 1), "{i}");
        }
        drop(arena);
        assert_eq!(all[6][77_776], 7, "buffers outlive their arena");
    }

    #[test]
    fn writing_to_a_part_copies_it() {
        let arena = Arc::new(Arena::default());
        let mut buffer = made(&arena, Some(KEY), 20_000, 5);
        buffer[0] = 9;
        assert_eq!((buffer[0], buffer[1]), (9, 5));
        arena.save(|all| assert!(all[0].1.iter().all(|&b| b == 5)));
    }

    #[test]
    fn small_buffers_and_those_outside_a_scope_are_on_the_heap() {
        let arena = Arc::new(Arena::default());
        assert_eq!(made(&arena, Some(KEY), SMALLEST - 1, 3)[5], 3);
        let outside = Buffer::filled(SMALLEST, |b| b.fill(4));
        assert_eq!((outside[SMALLEST - 1], arena.reserved(), arena.is_new()), (4, 0, false));
    }

    #[test]
    fn what_was_saved_is_not_made_again() {
        let arena = Arc::new(Arena::default());
        let two = |arena: &Arc<Arena>, values: Option<[u8; 2]>| {
            arena.scope(Some(KEY), || {
                [0, 1].map(|i| Buffer::filled(20_001 + i, |b| b.fill(values.expect("it is not there")[i])))
            })
        };
        let first = two(&arena, Some([6, 7]));
        made(&arena, Some([9; 4]), 30_000, 8);
        made(&arena, None, 30_000, 1);
        assert!(arena.is_new());
        let (table, bytes) = arena.save(|all| {
            let end = all.iter().map(|(s, _)| s.start + s.len).max().unwrap();
            let mut bytes = vec![0; end];
            all.iter().for_each(|(s, b)| bytes[s.start..s.start + s.len].copy_from_slice(b));
            (all.iter().map(|(s, _)| *s).collect::<Vec<_>>(), bytes)
        });
        assert_eq!(table.len(), 3);
        let read = |into: &mut [u8]| {
            into.copy_from_slice(&bytes);
            Ok(())
        };
        let restored = Arc::new(Arena::restore(&table, bytes.len(), read).unwrap());
        let again = two(&restored, None);
        assert!(again.iter().zip(&first).all(|(a, b)| a[..] == b[..]));
        assert!(!restored.is_new());
        // Taken once; and of another length, it is another.
        assert_eq!(two(&restored, Some([1, 2]))[1][0], 2);
        assert_eq!(made(&restored, Some([9; 4]), 30_001, 3)[0], 3);
        assert!(restored.is_new());
        assert_eq!(again[0][0], 6);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_mapped_is_not_made_again_and_moves() {
        let path = std::env::temp_dir().join(format!("anemone-arena-{}", std::process::id()));
        let bytes: Vec<u8> = (0..3 * HUGE).map(|i| (i / 64) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let (file, at) = (std::fs::File::open(&path).unwrap(), 128);
        let saved = [(0, 100_000), (HUGE, HUGE + 5)].map(|(start, len)| Saved { key: KEY, index: 0, start, len });
        let saved = [saved[0], Saved { index: 1, ..saved[1] }];
        let all = (at, bytes.len() - at);
        let seen = |found: &[u8]| if found == &bytes[at..] { Ok(()) } else { Err(io::Error::other("other bytes")) };
        let arena = Arc::new(Arena::map(&saved, &file, all, seen).unwrap());
        assert!(Arena::map(&saved, &file, (at, bytes.len()), |_| Ok(())).is_err(), "the file is shorter");
        assert!(Arena::map(&saved, &file, (at + 1, 3 * HUGE - 129), |_| Ok(())).is_err(), "askew");
        assert!(Arena::map(&saved, &file, all, |_| Err(io::Error::other("no"))).is_err());
        std::fs::remove_file(&path).unwrap();
        let buffers =
            arena.scope(Some(KEY), || saved.map(|s| Buffer::filled(s.len, |_| panic!("it is there already"))));
        for _ in 0..2 {
            for (buffer, s) in buffers.iter().zip(saved) {
                assert!(buffer[..] == bytes[at + s.start..][..s.len]);
            }
            arena.settle().unwrap();
        }
        // What is new lies elsewhere.
        assert_eq!(made(&arena, None, 20_000, 9)[19_999], 9);
    }

    #[test]
    fn tables_that_lie_are_refused() {
        let saved = |start, len| Saved { key: KEY, index: 0, start, len };
        for bad in [
            &[saved(0, 65)][..],
            &[saved(1, 2)],
            &[saved(0, 64), saved(0, 64)],
            &[saved(128, 1)],
            &[saved(0, usize::MAX)],
        ] {
            assert!(Arena::restore(bad, 64, |_| Ok(())).is_err(), "{bad:?}");
        }
        assert!(Arena::restore(&[], 0, |_| Ok(())).is_ok());
        let failed = Arena::restore(&[saved(0, 64)], 64, |_| Err(io::Error::other("cut short")));
        assert!(failed.is_err());
    }
}
