//! `f16`: half floats, rounded to nearest even.

use std::io;

use anemone_mil::ValueId;
use anemone_mil::constant::Deferred;
use anemone_mil::types::{DType, StaticType};
use half::f16;

use super::{Scheme, Watch, representable, rows, unrepresentable};
use crate::error::Result;
use crate::net::{Net, deferred};
use crate::source::Tensor;

pub(super) const SCHEME: Scheme = Scheme { name: "f16", bytes: |rows, columns| 2 * rows as u64 * columns as u64, add };

#[derive(Debug)]
struct Halves {
    tensor: Tensor,
    watch: Watch,
}

impl Deferred for Halves {
    fn write(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let encode = |values: &[f32], bytes: &mut [u8]| {
            for (v, b) in values.iter().zip(bytes.chunks_exact_mut(2)) {
                if !representable(*v) {
                    return Err(unrepresentable(self.tensor.name(), *v));
                }
                b.copy_from_slice(&f16::from_f32(*v).to_le_bytes());
            }
            Ok(())
        };
        rows(&self.tensor, &self.watch, 2 * self.tensor.row_len(), encode, sink)
    }
}

fn add(net: &mut Net<'_>, tensor: &Tensor, watch: &Watch) -> Result<ValueId> {
    let ty = StaticType::new(DType::F16, tensor.shape());
    let halves = Halves { tensor: tensor.clone(), watch: watch.clone() };
    Ok(net.f.constant(tensor.name(), deferred(ty, halves)))
}
