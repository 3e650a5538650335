//! How weights are stored.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anemone_mil::ValueId;
use rayon::prelude::*;

use crate::error::{ConvertError, Result};
use crate::net::Net;
use crate::source::Tensor;

mod half_floats;
mod int8;

/// A way to store weights: its name, the bits of one weight, what adds a matrix to a function.
pub struct Scheme {
    /// Its name on the command line.
    pub name: &'static str,
    /// Bytes that a matrix of (rows, columns) takes.
    pub bytes: fn(rows: usize, columns: usize) -> u64,
    add: fn(&mut Net<'_>, &Tensor, &Watch) -> Result<ValueId>,
}

impl std::fmt::Debug for Scheme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Every way to store weights.
pub static SCHEMES: &[Scheme] = &[half_floats::SCHEME, int8::SCHEME];

/// The way named `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Scheme> {
    SCHEMES.iter().find(|s| s.name == name)
}

/// The weights of one conversion.
#[derive(Debug, Clone)]
pub(crate) struct Weights {
    pub(crate) scheme: &'static Scheme,
    pub(crate) watch: Watch,
}

impl Weights {
    pub(crate) fn add(&self, net: &mut Net<'_>, tensor: &Tensor) -> Result<ValueId> {
        (self.scheme.add)(net, tensor, &self.watch)
    }
}

/// How far the writing of weights has come, and whether it should stop.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// Weights written so far.
    pub done: Arc<AtomicU64>,
    /// Set it to stop: the conversion ends with an error and leaves nothing behind.
    pub stop: Arc<AtomicBool>,
}

/// Rows are decoded in pieces of about this many weights.
const PIECE: usize = 1 << 20;

/// Calls `encode(row, decoded weights, packed bytes to append to)` for all rows, in parallel, and hands the bytes to `sink`
/// in order.
pub(crate) fn rows(
    tensor: &Tensor,
    watch: &Watch,
    row_bytes: usize,
    encode: impl Fn(&[f32], &mut [u8]) -> io::Result<()> + Sync,
    sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let (rows, columns) = (tensor.rows(), tensor.row_len());
    let per_piece = (PIECE / columns.max(1)).clamp(1, rows.max(1));
    let mut values = vec![0.0; per_piece * columns];
    let mut bytes = vec![0; per_piece * row_bytes];
    for start in (0..rows).step_by(per_piece) {
        if watch.stop.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "stopped on request"));
        }
        let n = per_piece.min(rows - start);
        values[..n * columns]
            .par_chunks_mut(columns.max(1))
            .zip(bytes[..n * row_bytes].par_chunks_mut(row_bytes))
            .enumerate()
            .try_for_each(|(i, (values, bytes))| {
                tensor.decode_rows(start + i..start + i + 1, values);
                encode(values, bytes)
            })?;
        sink(&bytes[..n * row_bytes])?;
        watch.done.fetch_add((n * columns) as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// Refuses weights that half floats cannot hold.
pub(crate) fn check_half(name: &str, values: &[f32]) -> Result<()> {
    match values.iter().find(|v| !representable(**v)) {
        None => Ok(()),
        Some(v) => Err(ConvertError::Unrepresentable { tensor: name.to_owned(), value: *v }),
    }
}

/// Whether a half float is near the value: finite, and not beyond the largest.
fn representable(v: f32) -> bool {
    half::f16::from_f32(v).is_finite()
}

fn unrepresentable(name: &str, value: f32) -> io::Error {
    io::Error::other(ConvertError::Unrepresentable { tensor: name.to_owned(), value })
}
