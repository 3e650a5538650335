//! Matrices that are stored as several constants, of which the making of the first gives the others too.

use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use anemone_mil::ValueId;
use anemone_mil::constant::Deferred;
use anemone_mil::types::StaticType;
use half::f16;

use super::Shared;
use crate::net::Net;

/// Where bytes go as they are made.
pub(super) type Sink<'a> = dyn FnMut(&[u8]) -> io::Result<()> + 'a;

/// Makes the constants of one matrix.
pub(super) trait Make: Debug + Send + Sync + 'static {
    /// The bytes of the first constant go to `sink`, if there is one; those of the others are returned, in order.
    fn make(&self, sink: Option<&mut Sink<'_>>) -> io::Result<Vec<Vec<u8>>>;
}

/// The constants of one matrix.
#[derive(Debug)]
pub(super) struct Pieces<M> {
    maker: M,
    /// What the making of the first gave of the others, until it is asked for.
    rest: Mutex<Vec<Option<Vec<u8>>>>,
}

impl<M: Make> Pieces<M> {
    pub(super) fn new(maker: M) -> Arc<Self> {
        Arc::new(Self { maker, rest: Mutex::default() })
    }

    /// Adds the constant that is called `name`, number `index` of the matrix.
    pub(super) fn add(
        self: &Arc<Self>,
        net: &mut Net<'_>,
        shared: &Shared,
        (name, ty): (&str, StaticType),
        index: usize,
    ) -> ValueId {
        let make = || -> Arc<dyn Deferred> { Arc::new(Piece { pieces: Arc::clone(self), index }) };
        net.f.constant(name, shared.constant(name, ty, make))
    }
}

#[derive(Debug)]
struct Piece<M> {
    pieces: Arc<Pieces<M>>,
    index: usize,
}

impl<M: Make> Deferred for Piece<M> {
    fn write(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let Pieces { maker, rest } = &*self.pieces;
        let Some(other) = self.index.checked_sub(1) else {
            let made = maker.make(Some(sink))?;
            *rest.lock().unwrap_or_else(PoisonError::into_inner) = made.into_iter().map(Some).collect();
            return Ok(());
        };
        let kept = rest.lock().unwrap_or_else(PoisonError::into_inner).get_mut(other).and_then(Option::take);
        match kept {
            Some(bytes) => sink(&bytes),
            None => sink(&maker.make(None)?[other]),
        }
    }
}

/// Half floats as bytes.
pub(super) fn halves(values: &[f16]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}
