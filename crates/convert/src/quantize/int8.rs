//! `int8`: eight-bit integers with one half float scale per row: `w ≈ scale · q`, scale = largest magnitude of the row ÷ 127.

use std::io;

use anemone_mil::ValueId;
use anemone_mil::constant::Deferred;
use anemone_mil::types::{DType, StaticType};
use half::f16;

use super::{Scheme, Watch, rows, unrepresentable};
use crate::error::Result;
use crate::net::{Net, deferred};
use crate::source::Tensor;

pub(super) const SCHEME: Scheme =
    Scheme { name: "int8", bytes: |rows, columns| rows as u64 * columns as u64 + 2 * rows as u64, add };

/// The scale of a row, rounded up where rounding down would clip its largest weight.
fn scale(name: &str, row: &[f32]) -> io::Result<f16> {
    let max = row.iter().fold(0f32, |m, v| m.max(v.abs()));
    if let Some(v) = row.iter().find(|v| !v.is_finite()) {
        return Err(unrepresentable(name, *v));
    }
    let exact = max / 127.0;
    let mut s = f16::from_f32(exact);
    if s.to_f32() * 127.5 < max {
        s = f16::from_bits(s.to_bits() + 1);
    }
    // A row of zeros, or of weights too small for any half float scale: zeros times any scale.
    if s == f16::ZERO {
        Ok(f16::MIN_POSITIVE_SUBNORMAL)
    } else if s.is_finite() {
        Ok(s)
    } else {
        Err(unrepresentable(name, max))
    }
}

#[derive(Debug)]
struct Data {
    tensor: Tensor,
    watch: Watch,
}

#[derive(Debug)]
struct Scales {
    tensor: Tensor,
    stop: Watch,
}

impl Deferred for Data {
    fn write(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let encode = |values: &[f32], bytes: &mut [u8]| {
            let inverse = 1.0 / scale(self.tensor.name(), values)?.to_f32();
            for (v, b) in values.iter().zip(bytes) {
                *b = (v * inverse).round_ties_even().clamp(-127.0, 127.0) as i8 as u8;
            }
            Ok(())
        };
        rows(&self.tensor, &self.watch, self.tensor.row_len(), encode, sink)
    }
}

impl Deferred for Scales {
    fn write(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let encode = |values: &[f32], bytes: &mut [u8]| {
            bytes.copy_from_slice(&scale(self.tensor.name(), values)?.to_le_bytes());
            Ok(())
        };
        rows(&self.tensor, &self.stop, 2, encode, sink)
    }
}

fn add(net: &mut Net<'_>, tensor: &Tensor, watch: &Watch) -> Result<ValueId> {
    let (rows, columns) = (tensor.rows(), tensor.row_len());
    let data = Data { tensor: tensor.clone(), watch: watch.clone() };
    // Scales are counted with the data.
    let stop = Watch { stop: watch.stop.clone(), ..Watch::default() };
    let scales = Scales { tensor: tensor.clone(), stop };
    let data = net
        .f
        .constant(&format!("{}_data", tensor.name()), deferred(StaticType::new(DType::I8, &[rows, columns]), data));
    let scales =
        net.f.constant(&format!("{}_scale", tensor.name()), deferred(StaticType::new(DType::F16, &[rows, 1]), scales));
    net.op("constexpr_blockwise_shift_scale", tensor.name(), &[("data", data.into()), ("scale", scales.into())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_weight_is_off_by_more_than_half_a_step() {
        for row in [vec![0.0; 4], vec![1e-9, -1e-9], vec![1.0, -0.37, 0.004], vec![3e4, 2e4, -1.0], vec![1e-5, -2e-6]] {
            let s = scale("t", &row).unwrap().to_f32();
            for v in &row {
                let q = (v / s).round_ties_even().clamp(-127.0, 127.0);
                assert!((q * s - v).abs() <= s * 0.501, "{v} in {row:?} became {}", q * s);
            }
        }
    }

    #[test]
    fn what_no_half_float_scale_can_hold_is_refused_by_name() {
        assert!(scale("big", &[1e38]).unwrap_err().to_string().contains("big"));
        assert!(scale("nan", &[0.0, f32::NAN]).is_err());
    }
}
