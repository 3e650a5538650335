//! Lowering: from an operation's plain meaning to a kernel that a plan runs.

mod lasting;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, PoisonError};

use anemone_kernels::buffer::Arena;
use anemone_kernels::columns::Columns;
use bytes::Bytes;

use crate::layout::Layout;
use crate::op::{OpError, Operands, Out};
use crate::packed::Packed;

pub use lasting::{Lasting, RESULTS};

/// A compiled operation. It holds constants and what follows from them alone; shapes it takes from the operands at each
/// run, since one plan may serve a family of shapes.
pub trait Kernel: Send + Sync + Debug {
    /// Computes the results. Must not allocate, and must give the same bits for any number of workers.
    ///
    /// # Errors
    /// If a run-time value is out of bounds.
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError>;

    /// How many floats of scratch space a run needs.
    fn scratch(&self) -> usize {
        0
    }

    /// Whether it accepts the operand as the strided view `layout`, which may lie in a state as half floats
    /// ([`Operands::layout_at`], [`Operands::halves_at`]). Either all operands that it accepts so lie in states, or none.
    fn accepts_view(&self, _param: usize, _layout: &Layout) -> bool {
        false
    }

    /// The work that it gives to [`Workers::for_lasting`], for which there is room then.
    fn lasting(&self) -> Option<&Arc<dyn Lasting>> {
        None
    }

    /// Whether it ignores the operand at run time because it holds it, packed for this machine.
    fn holds(&self, _param: usize) -> bool {
        false
    }
}

/// What a kernel may use while it runs.
pub struct Context<'a> {
    /// Threads to share the work with.
    pub workers: &'a dyn Workers,
    /// As many floats as [`Kernel::scratch`] asked for, with any content.
    pub scratch: &'a mut [f32],
}

/// Threads that share work.
pub trait Workers: Sync {
    /// How many threads there are, the caller's included.
    fn count(&self) -> usize;

    /// Splits `out` into pieces of `chunk` elements (the last may be shorter) and calls `f(index, piece)` once for each,
    /// on any thread. Returns when all are done.
    fn for_chunks(&self, out: &mut [f32], chunk: usize, f: &(dyn Fn(usize, &mut [f32]) + Sync));

    /// Splits each of several matrices into pieces of `piece` columns (its last may be narrower) and calls
    /// `f(matrix, first column, columns)` once for each, on any thread. Returns when all are done.
    fn for_columns(&self, outs: &mut [Columns<'_>], piece: usize, f: &(dyn Fn(usize, usize, Columns<'_>) + Sync));

    /// Does `work` on `x`, and calls `take(piece, results)` once for each piece, on the caller's thread. Waits for no thread that
    /// the system has put aside. Where that is not to be had, nothing is done, and the answer is `false`.
    fn for_lasting(&self, _work: &Arc<dyn Lasting>, _x: &[f32], _take: &mut dyn FnMut(usize, &[f32; RESULTS])) -> bool {
        false
    }
}

/// One thread: the caller's.
#[derive(Debug, Clone, Copy)]
pub struct Alone;

impl Workers for Alone {
    fn count(&self) -> usize {
        1
    }

    fn for_chunks(&self, out: &mut [f32], chunk: usize, f: &(dyn Fn(usize, &mut [f32]) + Sync)) {
        out.chunks_mut(chunk).enumerate().for_each(|(i, piece)| f(i, piece));
    }

    fn for_columns(&self, outs: &mut [Columns<'_>], piece: usize, f: &(dyn Fn(usize, usize, Columns<'_>) + Sync)) {
        for (i, out) in outs.iter_mut().enumerate() {
            for first in (0..out.width()).step_by(piece) {
                f(i, first, out.part(first..out.width().min(first + piece)));
            }
        }
    }
}

/// The operands of an operation to be lowered: types, the elements of small constants, and large constants as they are
/// packed.
pub trait LowerOperands: Operands {
    /// The constant that the argument is, still packed; `None` if it is known only at run time.
    fn packed_at(&self, param: usize, index: usize) -> Option<Packed>;

    /// Whether kernels must compute as the plain evaluation does, in floats, where they could do with integers.
    fn exact(&self) -> bool {
        false
    }

    /// Constants packed for this machine, shared by all plans of a model.
    fn pack_cache(&self) -> &PackCache;
}

/// Constants packed for this machine: each is packed once, however many plans use it. Their bytes lie in one arena.
#[derive(Default)]
pub struct PackCache {
    entries: Mutex<HashMap<Key, Entry>>,
    arena: Arc<Arena>,
    /// Whole files that constants lie in.
    files: Vec<Bytes>,
    keeps_plans: bool,
}

/// Address and length of the stored bytes, what else the packed form depends on, and its type.
type Key = (usize, usize, u64, TypeId);

struct Entry {
    /// Keeps the address, which is the key, from being used again.
    _source: Bytes,
    packed: Arc<dyn Any + Send + Sync>,
}

impl PackCache {
    /// A cache whose packed constants lie in `arena`. Those that lie in one of `files`, which are always given in the same
    /// order, have a key there: they are saved with it, and not packed again if it was restored with them.
    #[must_use]
    pub fn new(arena: Arc<Arena>, files: Vec<Bytes>) -> Self {
        Self { entries: Mutex::default(), arena, files, keeps_plans: false }
    }

    /// Where stored bytes lie, if that is one of the files: which one, and the offset.
    #[must_use]
    pub fn place(&self, source: &Bytes) -> Option<(usize, usize)> {
        let at = source.as_ptr().addr();
        let file = self.files.iter().position(|f| (f.as_ptr().addr()..f.as_ptr().addr() + f.len()).contains(&at))?;
        Some((file, at - self.files[file].as_ptr().addr()))
    }

    /// The bytes that lie at a place; `None` if the files have not so many there.
    #[must_use]
    pub fn at(&self, file: usize, offset: usize, len: usize) -> Option<Bytes> {
        let all = self.files.get(file)?;
        let end = offset.checked_add(len).filter(|&end| end <= all.len())?;
        Some(all.slice(offset..end))
    }

    /// Whether plans over it carry their written form, to be kept.
    #[must_use]
    pub fn keeps_plans(&self) -> bool {
        self.keeps_plans
    }

    /// The same, whose plans carry their written form if `keep`.
    #[must_use]
    pub fn keeping_plans(self, keep: bool) -> Self {
        Self { keeps_plans: keep, ..self }
    }

    /// What a constant is known by from one process to the next.
    fn lasting_key<T: Any>(&self, source: &Bytes, rest: u64) -> Option<[u64; 4]> {
        let (file, offset) = self.place(source)?;
        let kind = std::any::type_name::<T>()
            .bytes()
            .fold(file as u64, |h, b| (h.rotate_left(5) ^ u64::from(b)).wrapping_mul(0x517c_c1b7_2722_0a95));
        Some([kind, offset as u64, source.len() as u64, rest])
    }

    /// The constant whose stored bytes are `source` in the form `T`, made by `make` if it is not there yet. `rest` is a digest
    /// of what else `T` depends on: shape, element type, scales and so on, since packages may store equal bytes once.
    pub fn get<T: Any + Send + Sync>(&self, source: &Bytes, rest: u64, make: impl FnOnce() -> T) -> Arc<T> {
        let key = (source.as_ptr() as usize, source.len(), rest, TypeId::of::<T>());
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.entry(key).or_insert_with(|| {
            let packed = self.arena.scope(self.lasting_key::<T>(source, rest), || Arc::new(make()));
            Entry { _source: source.clone(), packed }
        });
        Arc::clone(&entry.packed).downcast().expect("the key holds the type")
    }
}

impl Debug for PackCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("PackCache").field("entries", &entries.len()).field("arena", &self.arena).finish()
    }
}
