//! What the threads of a pool meet with. The model of it (`tests/pool_model.rs`) has these of loom instead.

use std::cell::UnsafeCell;
use std::time::{Duration, Instant};

pub(super) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
pub(super) use std::sync::{Condvar, Mutex};

/// Asks until there is an answer, for so long at most.
pub(super) fn spin<T>(long: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        for _ in 0..64 {
            if let Some(answer) = ask() {
                return Some(answer);
            }
            std::hint::spin_loop();
        }
        if start.elapsed() > long {
            return None;
        }
    }
}

/// A value that threads take turns at: whoever asks for it answers for that.
#[derive(Debug, Default)]
pub(super) struct Cell<T>(UnsafeCell<T>);

impl<T> Cell<T> {
    pub(super) fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// The value, for reading.
    pub(super) fn get(&self) -> Reading<T> {
        Reading(self.0.get())
    }

    /// The value, for writing.
    pub(super) fn get_mut(&self) -> Writing<T> {
        Writing(self.0.get())
    }
}

/// The address of a value that is read.
pub(super) struct Reading<T>(*const T);

impl<T> Reading<T> {
    /// # Safety
    /// The cell outlives the reference, and nobody writes it meanwhile.
    pub(super) unsafe fn deref(&self) -> &T {
        // SAFETY: as the caller promises.
        unsafe { &*self.0 }
    }
}

/// The address of a value that is written.
pub(super) struct Writing<T>(*mut T);

impl<T> Writing<T> {
    /// # Safety
    /// The cell outlives the reference, and nobody else reads or writes it meanwhile.
    #[expect(clippy::mut_from_ref, reason = "the caller answers for it")]
    pub(super) unsafe fn deref(&self) -> &mut T {
        // SAFETY: as the caller promises.
        unsafe { &mut *self.0 }
    }
}
