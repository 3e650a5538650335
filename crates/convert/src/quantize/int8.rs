//! `int8`: eight-bit integers with one half float scale per row: `w ≈ scale · q`, scale = largest magnitude of the row ÷ 127.
//!
//! The matrices of the vocabulary have a scale for each 32 columns, or are half floats where the hardware takes no such scales,
//! and those of the values are half floats: what either is off by goes straight into the logits or the residual. On SmolLM2
//! this takes 2 % more bytes (20 % for the Neural Engine) and 60 % off the divergence.

use std::io;

use anemone_mil::types::DType;
use half::f16;

use super::blocks::{Blocks, Encode, Row};
use super::{Form, Promise, Scheme, Text, check_finite, of_vocabulary as is_of_vocabulary, unrepresentable};
use crate::source::Tensor;

pub(super) const SCHEME: Scheme =
    Scheme { name: "int8", about: "8-bit integers, a scale for each row", text: Text::Unused, choose };

fn choose(tensor: &Tensor) -> Form {
    match tensor.name() {
        _ if is_of_vocabulary(tensor) => in_blocks(tensor, &EXACT_VOCABULARY),
        name if name.contains("v_proj.weight") => Form::Halves,
        _ => Form::Blocks(&ROWS),
    }
}

/// Eight bits for a matrix of the vocabulary, on any hardware.
pub(super) fn of_vocabulary(tensor: &Tensor) -> Form {
    in_blocks(tensor, &VOCABULARY)
}

fn in_blocks(tensor: &Tensor, blocks: &'static Blocks) -> Form {
    Form::Blocks(if tensor.row_len().is_multiple_of(32) { blocks } else { &ROWS })
}

/// Half a step, with what the rounding of the scale adds.
const WITHIN: Promise = Promise::Within(0.51 / 127.0);

/// A scale for each row.
pub(super) static ROWS: Blocks = Blocks {
    name: "8-bit integers, a scale for each row",
    dtype: DType::I8,
    block: None,
    offset: None,
    on_engine: None,
    promise: WITHIN,
    encode: Encode::Rows(encode),
};

/// A scale for each 32 columns.
pub(super) static BLOCKS: Blocks =
    Blocks { name: "8-bit integers in blocks of 32, requantized", block: Some(32), ..ROWS };

static VOCABULARY: Blocks =
    Blocks { name: "8-bit integers in blocks of 32", on_engine: Some(Form::Blocks(&ROWS)), ..BLOCKS };

static EXACT_VOCABULARY: Blocks = Blocks { on_engine: Some(Form::Halves), ..VOCABULARY };

/// The scale of a block, rounded up where rounding down would clip its largest weight.
fn scale(name: &str, block: &[f32]) -> io::Result<f16> {
    check_finite(name, block)?;
    let max = block.iter().fold(0f32, |m, v| m.max(v.abs()));
    let exact = max / 127.0;
    let mut s = f16::from_f32(exact);
    if s.to_f32() * 127.5 < max {
        s = f16::from_bits(s.to_bits() + 1);
    }
    // A block of zeros, or of weights too small for any half float scale: zeros times any scale.
    if s == f16::ZERO {
        Ok(f16::MIN_POSITIVE_SUBNORMAL)
    } else if s.is_finite() {
        Ok(s)
    } else {
        Err(unrepresentable(name, max))
    }
}

fn encode(row: &mut Row<'_>) -> io::Result<()> {
    row.decode();
    let block = row.values.len().max(1) / row.scales.len().max(1);
    for ((values, q), s) in row.values.chunks(block).zip(row.q.chunks_mut(block)).zip(&mut *row.scales) {
        *s = scale(row.tensor.name(), values)?;
        let inverse = 1.0 / s.to_f32();
        for (v, b) in values.iter().zip(q) {
            *b = (v * inverse).round_ties_even().clamp(-127.0, 127.0) as i8 as u8;
        }
    }
    Ok(())
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
