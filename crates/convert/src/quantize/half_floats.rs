//! `f16`: half floats, rounded to nearest even.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anemone_mil::ValueId;
use anemone_mil::constant::Deferred;
use anemone_mil::types::{DType, StaticType};
use half::f16;
use rayon::prelude::*;

use super::{Form, PIECE, Promise, Scheme, Text, Watch, Weights, representable, unrepresentable};
use crate::dequantize;
use crate::error::Result;
use crate::net::Net;
use crate::source::Tensor;

pub(super) const SCHEME: Scheme =
    Scheme { name: "f16", about: "half floats", text: Text::Unused, choose: |_| Form::Halves };

/// Half floats stay what they are. Others are rounded: by half a unit in the eleventh bit.
pub(super) fn promise(matrix: &Tensor) -> Promise {
    let as_stored = matrix.rows() > 0 && matrix.row_bytes(0).is_some();
    if as_stored && *matrix.kind() == dequantize::F16 { Promise::Exact } else { Promise::Within(1.0 / 2048.0) }
}

#[derive(Debug)]
struct Halves {
    tensor: Tensor,
    watch: Watch,
}

impl Deferred for Halves {
    fn write(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let (rows, columns) = (self.tensor.rows(), self.tensor.row_len());
        let per_piece = (PIECE / columns.max(1)).clamp(1, rows.max(1));
        let mut values = vec![0.0; per_piece * columns];
        let mut bytes = vec![0; 2 * per_piece * columns];
        for start in (0..rows).step_by(per_piece) {
            self.watch.check()?;
            let n = per_piece.min(rows - start);
            values[..n * columns]
                .par_chunks_mut(columns.max(1))
                .zip(bytes[..2 * n * columns].par_chunks_mut(2 * columns.max(1)))
                .enumerate()
                .try_for_each(|(i, (values, bytes))| {
                    self.tensor.decode_rows(start + i..start + i + 1, values);
                    for (v, b) in values.iter().zip(bytes.chunks_exact_mut(2)) {
                        if !representable(*v) {
                            return Err(unrepresentable(self.tensor.name(), *v));
                        }
                        b.copy_from_slice(&f16::from_f32(*v).to_le_bytes());
                    }
                    Ok(())
                })?;
            sink(&bytes[..2 * n * columns])?;
            self.watch.done.fetch_add((n * columns) as u64, Ordering::Relaxed);
        }
        Ok(())
    }
}

pub(super) fn add(net: &mut Net<'_>, tensor: &Tensor, weights: &Weights) -> Result<ValueId> {
    let ty = StaticType::new(DType::F16, tensor.shape());
    let make = || -> Arc<dyn Deferred> { Arc::new(Halves { tensor: tensor.clone(), watch: weights.watch.clone() }) };
    let constant = weights.shared.constant(tensor.name(), ty, make);
    Ok(net.f.constant(tensor.name(), constant))
}
