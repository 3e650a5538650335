//! What is left to do when the first call is over, beside the next ones: packed weights move from where their file is mapped
//! into huge pages, and what only opening needed is given back.

use std::sync::{Arc, Once};
use std::thread;

use anemone_kernels::buffer::Arena;

use crate::heap;

/// The packed weights of a runner, which are moved once.
#[derive(Debug)]
pub(super) struct Settling {
    arenas: Vec<Arc<Arena>>,
    begun: Once,
}

impl Settling {
    pub(super) fn of(arenas: Vec<Arc<Arena>>) -> Self {
        Self { arenas, begun: Once::new() }
    }

    /// Moves them on a thread of their own, if that was not begun before. Where that fails they stay in small pages, which is
    /// slower and nothing else.
    pub(super) fn begin(&self) {
        self.begun.call_once(|| {
            let arenas = self.arenas.clone();
            let work = move || {
                let begin = std::time::Instant::now();
                match arenas.iter().try_for_each(|arena| arena.settle()) {
                    Ok(()) => tracing::debug!("packed weights moved in {:?}", begin.elapsed()),
                    Err(error) => tracing::info!("packed weights stay where they are mapped: {error}"),
                }
                heap::give_back_code();
                heap::give_back();
            };
            if let Err(error) = thread::Builder::new().name("anemone-settle".to_owned()).spawn(work) {
                tracing::info!("packed weights stay where they are mapped: {error}");
            }
        });
    }
}
