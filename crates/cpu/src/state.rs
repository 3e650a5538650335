//! States: memory that a run reads and writes in place.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use anemone_mil::Function;
use anemone_mil::types::{DType, Shape, elements};
use half::f16;
use half::vec::HalfBitsVecExt;

use crate::error::PlanError;

/// One state tensor: half floats of a fixed shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSpec {
    /// Its name in the program.
    pub name: String,
    /// Its shape.
    pub shape: Shape,
}

/// The states of a model, in order of names, and whose they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateLayout {
    /// Digest of the package that declares them; all zeros for programs that are no package.
    pub owner: [u8; 32],
    /// The states.
    pub states: Vec<StateSpec>,
}

/// Why a state is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Made by another package.
    #[error("the state belongs to another package (digest {found}, expected {expected}); make a new one")]
    Foreign {
        /// Digest of the package asked to run, as hexadecimal digits.
        expected: String,
        /// Digest of the package that made the state.
        found: String,
    },
    /// Made for other state tensors.
    #[error("the state holds {found}, expected {expected}; make a new one")]
    Layout {
        /// What the function declares.
        expected: String,
        /// What the state holds.
        found: String,
    },
}

impl StateLayout {
    /// The states that a function declares.
    ///
    /// # Errors
    /// If one is not of half floats and fixed shape.
    pub fn of(function: &Function, owner: [u8; 32]) -> Result<Self, PlanError> {
        let mut states = Vec::new();
        for (id, name, ty) in function.states() {
            match ty {
                Some(t) if t.dtype == DType::F16 => states.push(StateSpec { name: name.to_owned(), shape: t.shape }),
                _ => {
                    return Err(PlanError::State { name: name.to_owned(), found: function.value(id).ty.to_string() });
                }
            }
        }
        states.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { owner, states })
    }

    /// Bytes that a state of this layout takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.states.iter().map(|s| elements(&s.shape) * 2).sum()
    }

    /// The index of the state `name`.
    #[must_use]
    pub fn index(&self, name: &str) -> Option<usize> {
        self.states.iter().position(|s| s.name == name)
    }

    fn describe(&self) -> String {
        let all: Vec<String> = self.states.iter().map(|s| format!("{} {:?}", s.name, s.shape.as_slice())).collect();
        if all.is_empty() { "no states".to_owned() } else { all.join(", ") }
    }
}

/// The elements of one state, from the start of a cache line on: rows of keys then lie in as few lines as they can. Large ones
/// begin with a page, so that the first positions of a head lie in as few of those.
#[derive(Debug)]
pub(crate) struct Halves {
    all: Vec<f16>,
    start: usize,
    len: usize,
}

impl Halves {
    const LINE: usize = 64;
    const PAGE: usize = 4096;
    /// Elements of a state for which a page more is next to nothing.
    const LARGE: usize = 1 << 17;

    fn zeros(len: usize) -> Self {
        let unit = if len < Self::LARGE { Self::LINE } else { Self::PAGE };
        let room = unit / size_of::<f16>();
        // Zeroed integers come from the system untouched, so columns that are never written take no memory.
        let all = vec![0u16; len + room].reinterpret_into::<f16>();
        let start = all.as_ptr().align_offset(unit).min(room);
        Self { all, start, len }
    }
}

impl Deref for Halves {
    type Target = [f16];

    fn deref(&self) -> &[f16] {
        &self.all[self.start..][..self.len]
    }
}

impl DerefMut for Halves {
    fn deref_mut(&mut self) -> &mut [f16] {
        &mut self.all[self.start..][..self.len]
    }
}

impl Clone for Halves {
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.len());
        copy.copy_from_slice(self);
        copy
    }
}

/// The content of all states of one conversation. It can move between threads, and is used by one at a time.
///
/// ```compile_fail
/// fn shared<T: Sync>(_: T) {}
/// fn two_at_once(state: anemone_cpu::State) { shared(state) }
/// ```
#[derive(Debug)]
pub struct State {
    layout: Arc<StateLayout>,
    pub(crate) tensors: Vec<Halves>,
    exclusive: PhantomData<Cell<()>>,
}

impl State {
    /// A fresh state, all zeros.
    #[must_use]
    pub fn new(layout: Arc<StateLayout>) -> Self {
        let tensors = layout.states.iter().map(|s| Halves::zeros(elements(&s.shape))).collect();
        Self { layout, tensors, exclusive: PhantomData }
    }

    /// What it holds and whose it is.
    #[must_use]
    pub fn layout(&self) -> &Arc<StateLayout> {
        &self.layout
    }

    /// The elements of the state `name`, row-major.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[f16]> {
        self.layout.index(name).map(|i| &*self.tensors[i])
    }

    /// The elements of the state `name`, for restoring a snapshot.
    #[must_use]
    pub fn get_mut(&mut self, name: &str) -> Option<&mut [f16]> {
        self.layout.index(name).map(|i| &mut *self.tensors[i])
    }

    /// An independent copy.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { layout: Arc::clone(&self.layout), tensors: self.tensors.clone(), exclusive: PhantomData }
    }

    /// Refuses a state that another package or other tensors made.
    pub(crate) fn check(&self, expected: &Arc<StateLayout>) -> Result<(), StateError> {
        if Arc::ptr_eq(&self.layout, expected) {
            return Ok(());
        }
        if self.layout.owner != expected.owner {
            return Err(StateError::Foreign { expected: hex(&expected.owner), found: hex(&self.layout.owner) });
        }
        if self.layout.states != expected.states {
            return Err(StateError::Layout { expected: expected.describe(), found: self.layout.describe() });
        }
        Ok(())
    }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().take(6).map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_begin_with_a_line_large_ones_with_a_page_and_a_fork_too() {
        let state = |name: &str, shape: &[usize]| StateSpec { name: name.to_owned(), shape: Shape::from_slice(shape) };
        let states = vec![state("a", &[3]), state("b", &[2, 3, 5000, 7]), state("c", &[4096])];
        let mut state = State::new(Arc::new(StateLayout { owner: [0; 32], states }));
        state.get_mut("b").unwrap()[5] = f16::from_f32(2.5);
        let fork = state.fork();
        for (name, len, unit) in [("a", 3, 64), ("b", 210_000, 4096), ("c", 4096, 64)] {
            for state in [&state, &fork] {
                let all = state.get(name).unwrap();
                assert_eq!((all.len(), all.as_ptr().addr() % unit), (len, 0), "{name}");
            }
        }
        assert_eq!((fork.get("b").unwrap()[5], fork.get("b").unwrap()[6]), (f16::from_f32(2.5), f16::ZERO));
    }
}
