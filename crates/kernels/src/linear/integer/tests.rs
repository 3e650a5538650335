use super::super::{BlockShape, Linear, LinearLut, LinearQ4, LinearQ8, LutShape, ScaleType};
use super::*;
use crate::linear::noise::{floats, numbers, same};
use half::f16;

fn quantized(isa: Isa, x: &[f32], n: usize, k: usize) -> Vec<u8> {
    // Sentinels on both sides.
    let mut bytes = vec![0xa5; Activations::bytes(n, k) + 2];
    let end = bytes.len() - 1;
    Activations::quantize(isa, x, n, k, &mut bytes[1..end]);
    assert_eq!((bytes[0], bytes[end]), (0xa5, 0xa5));
    bytes[1..end].to_vec()
}

fn exact(linear: &Linear<'_>, x: &[f32], n: usize) -> Vec<f32> {
    let mut out = vec![0.0; n * linear.rows()];
    linear.matmul(Isa::detect(), 0..linear.rows(), x, n, &mut out);
    out
}

/// Checks the integer product: the documented bound, and the same bits however it is computed.
fn agrees(linear: Linear<'_>, dense: &[f32], what: &str) {
    let (rows, k) = (linear.rows(), linear.k());
    for n in [1, 2, 5, 7, 9, 16] {
        let x = floats(n as u64, n * k);
        let bytes = quantized(Isa::Scalar, &x, n, k);
        let activations = Activations::new(n, k, &bytes);
        let mut stands_for = vec![0.0; n * k];
        activations.dequantize(&mut stands_for);
        let (near, want) = (exact(&linear, &stands_for, n), exact(&linear, &x, n));
        let mut first: Option<Vec<f32>> = None;
        for isa in Isa::available() {
            let what = format!("{what} {} n {n}", isa.name());
            assert_eq!(quantized(isa, &x, n, k), bytes, "{what}");
            let mut out = vec![f32::NAN; n * rows];
            linear.matmul_int8(isa, 0..rows, activations, &mut out);
            for t in 0..n {
                for r in 0..rows {
                    let (x, w) = (&x[t * k..(t + 1) * k], &dense[r * k..(r + 1) * k]);
                    let parts = x.chunks(BLOCK).zip(w.chunks(BLOCK));
                    let bound: f32 = parts
                        .map(|(x, w)| {
                            let largest = x.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
                            largest / 64_768.0 * w.iter().map(|w| w.abs()).sum::<f32>()
                        })
                        .sum();
                    let size: f32 = x.iter().zip(w).map(|(x, w)| (x * w).abs()).sum::<f32>() + bound;
                    let (got, i) = (out[t * rows + r], t * rows + r);
                    assert!((got - near[i]).abs() <= size * 3e-5, "{what}: y[{t}, {r}] = {got}, not {}", near[i]);
                    assert!((got - want[i]).abs() <= bound * 1.01 + size * 3e-5, "{what}: y[{t}, {r}] = {got}");
                }
            }
            same(first.get_or_insert_with(|| out.clone()), &out, &what);
            for t in 0..n {
                let one = quantized(isa, &x[t * k..(t + 1) * k], 1, k);
                let mut alone = vec![f32::NAN; rows];
                linear.matmul_int8(isa, 0..rows, Activations::new(1, k, &one), &mut alone);
                same(&alone, &out[t * rows..(t + 1) * rows], &what);
            }
            for start in (0..rows).step_by(PANEL) {
                let range = start..rows.min(start + PANEL);
                let mut tile = vec![f32::NAN; n * range.len()];
                linear.matmul_int8(isa, range.clone(), activations, &mut tile);
                for t in 0..n {
                    same(&tile[t * range.len()..(t + 1) * range.len()], &out[t * rows..][range.clone()], &what);
                }
            }
        }
    }
}

#[test]
fn integer_products() {
    let shapes = [(1, 1, 1), (17, 40, 40), (48, 64, 32), (50, 96, 96), (33, 256, 128), (16, 257, 257), (16, 320, 32)];
    for (rows, k, block) in shapes {
        for (signed, offsets) in [(true, false), (false, false), (true, true), (false, true)] {
            let shape = BlockShape { rows, k, block, scale: ScaleType::F16, offsets };
            let count = rows * shape.blocks();
            let scales: Vec<f32> = floats(1, count).iter().map(|v| f16::from_f32(v * 0.01).to_f32()).collect();
            for bits in [4, 8] {
                let what = format!("q{bits} {shape:?} signed {signed}");
                let half = if signed { 0 } else { 1 << (bits - 1) };
                let offset = |v: &u64| (half + (v % 7) as i32 - 3) as f32;
                let offset: Option<Vec<f32>> = offsets.then(|| numbers(2, count).iter().map(offset).collect());
                // The extremes among the weights, too.
                let mut weights: Vec<u8> = numbers(3, (rows * k * bits).div_ceil(8)).iter().map(|&v| v as u8).collect();
                weights.iter_mut().step_by(3).for_each(|w| *w = if bits == 8 { 0x80 } else { 0x8f });
                weights.iter_mut().step_by(7).for_each(|w| *w = 0x7f);
                let dense: Vec<f32> = (0..rows * k)
                    .map(|i| {
                        let unsigned = if bits == 4 { weights[i / 2] >> (i % 2 * 4) & 15 } else { weights[i] };
                        let signed_value = f32::from((unsigned << (8 - bits)) as i8 >> (8 - bits));
                        let q = if signed { signed_value } else { f32::from(unsigned) };
                        let at = i / k * shape.blocks() + i % k / block;
                        scales[at] * (q - offset.as_ref().map_or(0.0, |o| o[at]))
                    })
                    .collect();
                if bits == 4 {
                    let bytes = LinearQ4::packed(shape, signed, &weights, &scales, offset.as_deref());
                    agrees(Linear::Q4(LinearQ4::new(shape, signed, &bytes)), &dense, &what);
                } else {
                    let bytes = LinearQ8::packed(shape, signed, &weights, &scales, offset.as_deref());
                    agrees(Linear::Q8(LinearQ8::new(shape, signed, &bytes)), &dense, &what);
                }
            }
        }
    }
}

#[test]
fn palettes_in_integers() {
    for (rows, k, row_groups, col_groups) in
        [(1, 1, 1, 1), (17, 40, 1, 1), (48, 64, 3, 2), (64, 64, 8, 1), (24, 96, 6, 3), (72, 32, 3, 1), (36, 100, 3, 1)]
    {
        for bits in [1, 2, 3, 4, 6] {
            let shape = LutShape { rows, k, bits, row_groups, col_groups };
            if bits == 6 && row_groups > 1 && !(rows / row_groups).is_multiple_of(PANEL) {
                continue;
            }
            let tables = floats(7, (row_groups * col_groups) << bits);
            let indices: Vec<u8> = numbers(8, (rows * k * bits).div_ceil(8)).iter().map(|&v| v as u8).collect();
            let dense: Vec<f32> = (0..rows * k)
                .map(|i| {
                    let bit = |b: usize| usize::from(indices[(i * bits + b) / 8] >> ((i * bits + b) % 8) & 1) << b;
                    let index: usize = (0..bits).map(bit).sum();
                    let group = i / k / (rows / row_groups) * col_groups + i % k / (k / col_groups);
                    tables[(group << bits) + index]
                })
                .collect();
            let bytes = LinearLut::packed(shape, &indices, &tables);
            let linear = LinearLut::new(shape, &bytes);
            assert!(linear.has_int8(), "{shape:?}");
            agrees(Linear::Lut(linear), &dense, &format!("{shape:?}"));
        }
    }
    // Two rows with a table of their own among four have no integer product.
    let shape = LutShape { rows: 16, k: 32, bits: 4, row_groups: 8, col_groups: 1 };
    let bytes = LinearLut::packed(shape, &[0; 256], &[0.0; 128]);
    assert!(!LinearLut::new(shape, &bytes).has_int8());
}

#[test]
fn extremes_do_not_saturate() {
    // Every weight and every activation at its extreme, both signs.
    for (weight, sign) in [(0x80, 1.0), (0x7f, 1.0), (0x80, -1.0), (0x7f, -1.0), (0xff, 1.0)] {
        let shape = BlockShape { rows: 16, k: 64, block: 32, scale: ScaleType::F32, offsets: false };
        for signed in [true, false] {
            let bytes = LinearQ8::packed(shape, signed, &[weight; 16 * 64], &[1.0; 32], None);
            let value = if signed { f32::from(weight as i8) } else { f32::from(weight) };
            for isa in Isa::available() {
                let record = quantized(isa, &[sign * 32_384.0; 64], 1, 64);
                let mut out = [0.0; 16];
                let x = Activations::new(1, 64, &record);
                LinearQ8::new(shape, signed, &bytes).matmul_int8(isa, 0..16, x, &mut out);
                assert_eq!(out, [value * sign * 32_384.0 * 64.0; 16], "{} {weight} {sign} {signed}", isa.name());
            }
        }
    }
}

#[test]
fn hostile_activations_become_nan_in_their_token() {
    let k = 96;
    let shape = BlockShape { rows: 16, k, block: 32, scale: ScaleType::F16, offsets: false };
    let weights: Vec<u8> = numbers(3, 16 * k / 2).iter().map(|&v| v as u8).collect();
    let bytes = LinearQ4::packed(shape, true, &weights, &[0.1; 48], None);
    let mut x = floats(5, 6 * k);
    x[k + 3] = f32::NAN;
    x[2 * k + 40] = f32::INFINITY;
    x[3 * k + 95] = f32::NEG_INFINITY;
    x[4 * k..5 * k].fill(1e-40);
    for isa in Isa::available() {
        let record = quantized(isa, &x, 6, k);
        let mut out = vec![0.0; 6 * 16];
        LinearQ4::new(shape, true, &bytes).matmul_int8(isa, 0..16, Activations::new(6, k, &record), &mut out);
        for (t, row) in out.chunks(16).enumerate() {
            let nan = (1..=3).contains(&t);
            assert!(row.iter().all(|v| v.is_nan() == nan), "{} token {t}: {row:?}", isa.name());
            assert!(t != 4 || row.iter().all(|&v| v == 0.0), "{}: {row:?}", isa.name());
        }
    }
}

#[test]
#[should_panic(expected = "need blocks of 32")]
fn narrow_blocks_are_refused() {
    let shape = BlockShape { rows: 16, k: 48, block: 16, scale: ScaleType::F16, offsets: false };
    let bytes = LinearQ4::packed(shape, true, &[0; 16 * 24], &[0.1; 48], None);
    let record = quantized(Isa::Scalar, &[0.0; 48], 1, 48);
    LinearQ4::new(shape, true, &bytes).matmul_int8(
        Isa::Scalar,
        0..16,
        Activations::new(1, 48, &record),
        &mut [0.0; 16],
    );
}
