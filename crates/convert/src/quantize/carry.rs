//! `keep`: the blocks of a GGUF file as they are, integer for integer, where Core ML has a form for them.
//!
//! | source | package | the same numbers |
//! |---|---|---|
//! | Q8_0 | int8, f16 scales of 32 columns | yes |
//! | Q4_0 | int4, f16 scales of 32 columns | yes |
//! | Q5_0 | int8, f16 scales of 32 columns | yes |
//! | Q4_1, Q5_1 | uint4, uint8; f16 scales and offsets of 32 columns | all but the offset |
//! | F16 | half floats | yes |
//! | F32, BF16 | half floats | rounded |
//! | others | int8, f16 scales of 32 columns | requantized |
//!
//! The offsets: Q4_1 and Q5_1 mean `scale · q + minimum`, Core ML means `scale · (q − offset)`. So the offset is
//! −minimum ÷ scale, which is rounded to a half float: off by no more than half floats of the weights would be.
//!
//! Rows stay rows when the heads of queries and keys are put back in order, and blocks run along rows: so they stay whole.

use std::io;

use anemone_mil::types::DType;
use half::f16;

use super::blocks::{Blocks, Encode, Row};
use super::{Form, Promise, Scheme, Text, int8, unrepresentable};
use crate::source::Tensor;

pub(super) const SCHEME: Scheme = Scheme {
    name: "keep",
    about: "what the source has: its Q8_0, Q4_0, Q4_1, Q5_0 and Q5_1 blocks integer for integer",
    text: Text::Unused,
    choose,
};

fn choose(tensor: &Tensor) -> Form {
    let as_stored = tensor.rows() > 0 && tensor.row_bytes(0).is_some();
    Form::Blocks(match tensor.kind().name {
        "F16" | "BF16" | "F32" => return Form::Halves,
        _ if !as_stored => &int8::ROWS,
        "Q8_0" => &Q8_0,
        "Q4_0" => &Q4_0,
        "Q5_0" => &Q5_0,
        "Q4_1" => &Q4_1,
        "Q5_1" => &Q5_1,
        _ if tensor.row_len().is_multiple_of(32) => &int8::BLOCKS,
        _ => &int8::ROWS,
    })
}

static Q8_0: Blocks = Blocks {
    name: "Q8_0 blocks as they were",
    dtype: DType::I8,
    block: Some(32),
    offset: None,
    on_engine: None,
    promise: Promise::Exact,
    encode: Encode::Rows(|row| each(row, plain::<34>, |bytes, q| q.copy_from_slice(&bytes[2..]))),
};
static Q4_0: Blocks = Blocks {
    name: "Q4_0 blocks as they were",
    dtype: DType::I4,
    encode: Encode::Rows(|row| each(row, plain::<18>, |bytes, q| nibbles(&bytes[2..], q, |_, n| n.wrapping_sub(8)))),
    ..Q8_0
};
static Q5_0: Blocks = Blocks {
    name: "Q5_0 blocks as they were",
    encode: Encode::Rows(|row| {
        each(row, plain::<22>, |bytes, q| nibbles(&bytes[6..], q, |i, n| (n | fifth(&bytes[2..6], i)).wrapping_sub(16)))
    }),
    ..Q8_0
};

/// Half floats have eleven bits: an offset is off by half a unit in the last.
const ROUNDED: Promise = Promise::Within(1.0 / 2000.0);

static Q4_1: Blocks = Blocks {
    name: "Q4_1 blocks as they were, the offsets rounded to half floats",
    dtype: DType::U4,
    block: Some(32),
    offset: Some(DType::F16),
    on_engine: None,
    promise: ROUNDED,
    encode: Encode::Rows(|row| each(row, with_minimum::<20>, |bytes, q| nibbles(&bytes[4..], q, |_, n| n))),
};
static Q5_1: Blocks = Blocks {
    name: "Q5_1 blocks as they were, the offsets rounded to half floats",
    dtype: DType::U8,
    encode: Encode::Rows(|row| {
        each(row, with_minimum::<24>, |bytes, q| nibbles(&bytes[8..], q, |i, n| n | fifth(&bytes[4..8], i)))
    }),
    ..Q4_1
};

/// Takes the blocks of a row over; `scale` gives scale and offset of a block, and whether its integers count.
fn each<const BYTES: usize>(
    row: &mut Row<'_>,
    scale: fn(&[u8; BYTES]) -> (f16, f16, bool),
    integers: fn(&[u8; BYTES], &mut [u8]),
) -> io::Result<()> {
    let stored = row.tensor.row_bytes(row.row).expect("a matrix is stored row by row");
    let places = row.scales.iter_mut().zip(&mut *row.offsets);
    for ((bytes, q), (s, o)) in stored.as_chunks::<BYTES>().0.iter().zip(row.q.chunks_exact_mut(32)).zip(places) {
        let counts;
        (*s, *o, counts) = scale(bytes);
        if !s.is_finite() || !o.is_finite() {
            return Err(unrepresentable(row.tensor.name(), s.to_f32()));
        }
        if counts { integers(bytes, q) } else { q.fill(0) }
    }
    Ok(())
}

fn half(bytes: &[u8], at: usize) -> f16 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// A scale and no offset.
fn plain<const BYTES: usize>(bytes: &[u8; BYTES]) -> (f16, f16, bool) {
    (half(bytes, 0), f16::ZERO, true)
}

/// A scale and a minimum. A block of one number, or of numbers that differ by less than half floats of them would, becomes
/// that number: `minimum · (0 − (−1))`.
fn with_minimum<const BYTES: usize>(bytes: &[u8; BYTES]) -> (f16, f16, bool) {
    let (scale, minimum) = (half(bytes, 0), half(bytes, 2));
    if !minimum.is_finite() {
        return (minimum, f16::ZERO, true);
    }
    let offset = f16::from_f32(-minimum.to_f32() / scale.to_f32());
    if offset.is_finite() || !scale.is_finite() {
        (scale, offset, true)
    } else if minimum == f16::ZERO {
        (f16::MIN_POSITIVE_SUBNORMAL, f16::ZERO, false)
    } else {
        (minimum, f16::NEG_ONE, false)
    }
}

/// The four-bit numbers of a block, each as `f(element, number)`: low halves first, then high ones.
fn nibbles(packed: &[u8], q: &mut [u8], f: impl Fn(usize, u8) -> u8) {
    for (i, &byte) in packed.iter().enumerate() {
        q[i] = f(i, byte & 15);
        q[i + 16] = f(i + 16, byte >> 4);
    }
}

/// The fifth bit of element `i`.
fn fifth(bits: &[u8], i: usize) -> u8 {
    ((bits[i / 8] >> (i % 8)) & 1) << 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dequantize::KINDS;

    /// Rows of blocks of kind `name` whose bytes look random, with scales and minimums that are finite.
    fn tensor(name: &str, rows: usize, columns: usize) -> Tensor {
        let kind = KINDS.iter().find(|k| k.name == name).unwrap();
        let mut x = 12345u32;
        let mut bytes: Vec<u8> = (0..kind.bytes_for(rows * columns).unwrap())
            .map(|_| {
                x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (x >> 24) as u8
            })
            .collect();
        let halves = if name.ends_with('1') { 2 } else { 1 };
        for (i, block) in bytes.chunks_exact_mut(kind.block_bytes).enumerate() {
            for h in 0..halves {
                let v = f16::from_f32(((i * 7 + h * 3) % 23) as f32 / 64.0 - 0.17);
                block[2 * h..2 * h + 2].copy_from_slice(&v.to_le_bytes());
            }
        }
        Tensor::new("t".into(), vec![rows, columns], kind, bytes.into())
    }

    fn check(name: &str, t: &Tensor) {
        let Form::Blocks(blocks) = choose(t) else { panic!("{name} has blocks") };
        let (n, per_row) = (t.row_len(), t.row_len() / 32);
        let (mut values, mut q) = (vec![0.0; n], vec![0; n]);
        let (mut scales, mut offsets) = (vec![f16::ZERO; per_row], vec![f16::ZERO; per_row]);
        let signed = matches!(blocks.dtype, DType::I4 | DType::I8);
        for row in 0..t.rows() {
            let mut r =
                Row { tensor: t, row, values: &mut values, q: &mut q, scales: &mut scales, offsets: &mut offsets };
            blocks.encode.row(&mut r).unwrap();
            r.decode();
            let top = values.iter().fold(0f32, |m, v| m.max(v.abs()));
            for (i, &v) in values.iter().enumerate() {
                let whole = if signed { f32::from(q[i] as i8) } else { f32::from(q[i]) };
                let found = scales[i / 32].to_f32() * (whole - offsets[i / 32].to_f32());
                match blocks.promise {
                    Promise::Exact => assert_eq!(found, v, "{name} row {row} column {i}"),
                    Promise::Within(share) => {
                        assert!((found - v).abs() <= share * top, "{name} row {row} column {i}: {found} for {v}");
                    }
                    Promise::Near(_) => panic!("{name}: blocks promise more"),
                }
            }
        }
    }

    #[test]
    fn every_kind_of_block_keeps_its_numbers() {
        for name in ["Q8_0", "Q4_0", "Q5_0", "Q4_1", "Q5_1"] {
            check(name, &tensor(name, 6, 96));
            check(name, &tensor(name, 8, 64).with_interleaved_heads(4));
        }
    }

    #[test]
    fn blocks_without_a_scale_are_their_minimum() {
        for (scale, minimum) in [(0.0, 0.0), (0.0, -1.5), (6e-8, 2.0), (0.25, 0.0)] {
            let mut bytes = vec![0x5a; 20];
            bytes[..2].copy_from_slice(&f16::from_f32(scale).to_le_bytes());
            bytes[2..4].copy_from_slice(&f16::from_f32(minimum).to_le_bytes());
            check(
                "Q4_1",
                &Tensor::new("t".into(), vec![1, 32], KINDS.iter().find(|k| k.name == "Q4_1").unwrap(), bytes.into()),
            );
        }
    }

    #[test]
    fn infinite_scales_are_refused() {
        for (name, size, at) in [("Q4_0", 18, 0), ("Q4_1", 20, 0), ("Q4_1", 20, 2)] {
            let mut bytes = vec![0; size];
            bytes[at..at + 2].copy_from_slice(&f16::INFINITY.to_le_bytes());
            let t = Tensor::new("t".into(), vec![1, 32], KINDS.iter().find(|k| k.name == name).unwrap(), bytes.into());
            let Form::Blocks(blocks) = choose(&t) else { panic!("{name} has blocks") };
            let mut r = Row {
                tensor: &t,
                row: 0,
                values: &mut [0.0; 32],
                q: &mut [0; 32],
                scales: &mut [f16::ZERO],
                offsets: &mut [f16::ZERO],
            };
            assert!(blocks.encode.row(&mut r).unwrap_err().to_string().contains("\"t\""), "{name}");
        }
    }
}
