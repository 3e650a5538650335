use super::super::{BlockShape, Linear, LinearLut, LinearQ4, LinearQ8, LutShape, PANEL, ScaleType};
use super::*;
use crate::linear::noise::{floats, numbers, same};
use half::f16;

/// The proof, where this machine gives it: elsewhere there is nothing to test.
fn amx() -> Option<Amx> {
    let amx = Amx::detect();
    if amx.is_none() {
        let expected = std::env::var("EXPECT_ISA").unwrap_or_default();
        assert!(!expected.split(',').any(|isa| isa == "amx"), "EXPECT_ISA asks for amx, this machine has none");
    }
    amx
}

/// A weight as the module says: two signed bytes, high and low.
type Weight = [i32; 2];

/// Rows as integers: the weights, and what 1 of a sum stands for.
struct Model {
    rows: Vec<Vec<(Vec<Weight>, f32)>>,
}

fn bytes(q: i32) -> Weight {
    [(q + 128) >> 8, i32::from(q as i8)]
}

/// One row of a chunk: `u` unsigned integers below twice `half`, of each column its scale and what is taken away.
fn row(u: &[i32], half: i32, scales: &[f32], offsets: &[f32]) -> (Vec<Weight>, f32) {
    let shift = |i: usize| half as f32 - offsets[i];
    let largest = (0..u.len()).fold(0.0_f32, |m, i| m.max(scales[i].abs() * (half as f32 + shift(i).abs())));
    let factor = if largest > 1e-30 { 32_512.0 / largest } else { 0.0 };
    let word = |i: usize| {
        let times = scales[i] * factor;
        let (m, c) = ((times * half as f32).round_ties_even() as i32, (times * shift(i)).round_ties_even() as i32);
        (((u[i] - half) * (32_768 / half) * m + (1 << 14)) >> 15) + c
    };
    ((0..u.len()).map(|i| bytes(word(i))).collect(), largest * (1.0 / 32_512.0) * 256.0)
}

impl Model {
    fn multiply(&self, x: &[f32], k: usize) -> Vec<f32> {
        let mut out = Vec::new();
        for x in x.chunks_exact(k) {
            for row in &self.rows {
                let mut y = 0.0_f32;
                for (x, (w, scale)) in x.chunks(chunk(k)).zip(row) {
                    let largest = x.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
                    let (token, factor) =
                        if largest < 1e-30 { (0.0, 0.0) } else { (largest / LARGEST, LARGEST / largest) };
                    let (mut high, mut low) = (0_i32, 0_i32);
                    for (x, w) in x.iter().zip(w) {
                        let x = bytes((x * factor).round_ties_even() as i32);
                        high += x[0] * w[0];
                        low += x[1] * w[0] + x[0] * w[1];
                    }
                    y = ((high as f32).mul_add(256.0, low as f32) * scale).mul_add(token, y);
                }
                out.push(y);
            }
        }
        out
    }
}

fn product(amx: Amx, linear: Linear<'_>, rows: Range<usize>, x: &[f32], k: usize) -> Vec<f32> {
    let n = x.len() / k;
    // Sentinels on both sides.
    let mut bytes = vec![0xa5; Tiles::bytes(n, k) + 2];
    let end = bytes.len() - 1;
    Tiles::quantize(amx, x, n, k, &mut bytes[1..end]);
    assert_eq!((bytes[0], bytes[end]), (0xa5, 0xa5));
    let mut out = vec![f32::NAN; n * rows.len()];
    let width = rows.len();
    let x = Tiles::new(amx, n, k, &bytes[1..end]);
    linear.matmul_tiles_columns(rows, x, Then::default(), Columns::new(&mut out, width));
    out
}

/// Checks the product: the bits of the model, near the exact one (`allowed` is the largest weight that the scales and offsets of
/// a row allow), whatever rows and tokens are computed together.
fn agrees(amx: Amx, linear: Linear<'_>, model: Option<&Model>, dense: &[f32], allowed: &[f32], what: &str) {
    let (rows, k) = (linear.rows(), linear.k());
    for n in [16, 17, 33] {
        let x = floats(n as u64, n * k);
        let out = product(amx, linear, 0..rows, &x, k);
        if let Some(model) = model {
            same(&out, &model.multiply(&x, k), &format!("{what}, {n} tokens against the model"));
        }
        for t in 0..n {
            for r in 0..rows {
                let both = x[t * k..][..k].iter().zip(&dense[r * k..][..k]);
                let exact: f64 = both.clone().map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
                let size: f64 = both.map(|(x, w)| f64::from((x * w).abs())).sum();
                let got = f64::from(out[t * rows + r]);
                // A weight is off by 2 of 32512 at most, and a product by what is left out.
                let bound = size * 2e-4 + f64::from(allowed[r]) * k as f64 * 1.5e-4;
                assert!((got - exact).abs() <= bound, "{what}: y[{t}, {r}] = {got}, not {exact}, {n} tokens");
            }
        }
        for start in (0..rows).step_by(PANEL) {
            let range = start..rows.min(start + PANEL);
            let part = product(amx, linear, range.clone(), &x, k);
            for t in 0..n {
                let whole = &out[t * rows..][range.clone()];
                same(&part[t * range.len()..][..range.len()], whole, &format!("{what}, rows {range:?}"));
            }
        }
        let turned: Vec<f32> = x.chunks_exact(k).rev().flatten().copied().collect();
        let turned = product(amx, linear, 0..rows, &turned, k);
        for t in 0..n {
            same(&turned[(n - 1 - t) * rows..][..rows], &out[t * rows..][..rows], &format!("{what}, tokens turned"));
        }
    }
}

#[test]
fn integers_of_rows_and_blocks() {
    let Some(amx) = amx() else { return };
    let shapes = [
        (1, 1, 1),
        (17, 40, 40),
        (48, 64, 32),
        (50, 96, 96),
        (33, 256, 128),
        (16, 257, 257),
        (16, 320, 32),
        (20, 640 + 32, 32),
        (18, 1536, 32),
        (20, 2048 + 32, 32),
        (3, 4097, 4097),
    ];
    for (rows, k, block) in shapes {
        for (signed, offsets) in [(true, false), (false, false), (true, true), (false, true)] {
            let shape = BlockShape { rows, k, block, scale: ScaleType::F16, offsets };
            let count = rows * shape.blocks();
            let scales: Vec<f32> = floats(1, count).iter().map(|v| f16::from_f32(v * 0.01).to_f32()).collect();
            for bits in [4, 8] {
                let what = format!("q{bits} {shape:?} signed {signed}");
                let half = 1 << (bits - 1);
                let zero = if signed { 0 } else { half };
                let offset = |v: &u64| (zero + (v % 7) as i32 - 3) as f32;
                let offset: Option<Vec<f32>> = offsets.then(|| numbers(2, count).iter().map(offset).collect());
                // The extremes among the weights, too.
                let mut weights: Vec<u8> = numbers(3, (rows * k * bits).div_ceil(8)).iter().map(|&v| v as u8).collect();
                weights.iter_mut().step_by(3).for_each(|w| *w = if bits == 8 { 0x80 } else { 0x8f });
                weights.iter_mut().step_by(7).for_each(|w| *w = 0x7f);
                // Unsigned, or moved up by half.
                let unsigned: Vec<i32> = (0..rows * k)
                    .map(|i| {
                        let u = if bits == 4 { weights[i / 2] >> (i % 2 * 4) & 15 } else { weights[i] };
                        i32::from(u) ^ if signed { half } else { 0 }
                    })
                    .collect();
                let at = |i: usize| i / k * shape.blocks() + i % k / block;
                let moved = if signed { half as f32 } else { 0.0 };
                let taken = |i: usize| offset.as_ref().map_or(0.0, |o| o[at(i)]) + moved;
                let dense: Vec<f32> = (0..rows * k).map(|i| scales[at(i)] * (unsigned[i] as f32 - taken(i))).collect();
                let largest = |i: usize| scales[at(i)].abs() * (half as f32 + (half as f32 - taken(i)).abs());
                let allowed: Vec<f32> =
                    (0..rows).map(|r| (r * k..(r + 1) * k).fold(0.0, |m: f32, i| m.max(largest(i)))).collect();
                let model = Model {
                    rows: (0..rows)
                        .map(|r| {
                            let part = |c: usize| {
                                let columns = r * k + c * chunk(k)..r * k + k.min((c + 1) * chunk(k));
                                let s: Vec<f32> = columns.clone().map(|i| scales[at(i)]).collect();
                                let o: Vec<f32> = columns.clone().map(taken).collect();
                                if block == k && signed && !offsets {
                                    let w = unsigned[columns].iter().map(|u| [u - half, 0]).collect();
                                    return (w, s[0]);
                                }
                                row(&unsigned[columns], half, &s, &o)
                            };
                            (0..k.div_ceil(chunk(k))).map(part).collect()
                        })
                        .collect(),
                };
                if bits == 4 {
                    let packed = LinearQ4::packed(shape, signed, &weights, &scales, offset.as_deref());
                    agrees(
                        amx,
                        Linear::Q4(LinearQ4::new(shape, signed, &packed)),
                        Some(&model),
                        &dense,
                        &allowed,
                        &what,
                    );
                } else {
                    let packed = LinearQ8::packed(shape, signed, &weights, &scales, offset.as_deref());
                    agrees(
                        amx,
                        Linear::Q8(LinearQ8::new(shape, signed, &packed)),
                        Some(&model),
                        &dense,
                        &allowed,
                        &what,
                    );
                }
            }
        }
    }
}

#[test]
fn palettes() {
    let Some(amx) = amx() else { return };
    for (rows, k, row_groups, col_groups) in
        [(17, 40, 1, 1), (48, 64, 3, 2), (64, 64, 8, 1), (24, 96, 6, 3), (36, 100, 3, 1)]
    {
        for bits in [1, 2, 3, 4] {
            let shape = LutShape { rows, k, bits, row_groups, col_groups };
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
            let packed = LinearLut::packed(shape, &indices, &tables);
            agrees(
                amx,
                Linear::Lut(LinearLut::new(shape, &packed)),
                None,
                &dense,
                &vec![1.0; rows],
                &format!("{shape:?}"),
            );
        }
    }
}

#[test]
fn extremes_fit_the_sums() {
    let Some(amx) = amx() else { return };
    for weight in [0x80, 0x7f] {
        for (block, k) in [(2048, 2048), (32, 2048)] {
            let shape = BlockShape { rows: 32, k, block, scale: ScaleType::F32, offsets: false };
            let packed = LinearQ8::packed(shape, true, &vec![weight; 32 * k], &vec![1.0; 32 * shape.blocks()], None);
            for sign in [1.0, -1.0] {
                let y =
                    product(amx, Linear::Q8(LinearQ8::new(shape, true, &packed)), 0..32, &[sign * 3.0; 16 * 2048], k);
                let exact = f32::from(weight as i8) * sign * 3.0 * k as f32;
                assert!(
                    y.iter().all(|y| (y / exact - 1.0).abs() < 2e-4),
                    "{weight} {block} {sign}: {} for {exact}",
                    y[0]
                );
            }
        }
    }
}

#[test]
fn hostile_numbers_stay_in_their_token_or_row() {
    let Some(amx) = amx() else { return };
    let k = 96;
    let mut x = floats(5, 18 * k);
    x[k + 3] = f32::NAN;
    x[2 * k + 40] = f32::INFINITY;
    x[17 * k + 95] = f32::NEG_INFINITY;
    x[4 * k..5 * k].fill(1e-40);
    for block in [32, 96] {
        let shape = BlockShape { rows: 20, k, block, scale: ScaleType::F32, offsets: false };
        let mut scales = vec![0.1; 20 * shape.blocks()];
        scales[3 * shape.blocks()] = f32::NAN;
        scales[19 * shape.blocks()] = f32::INFINITY;
        scales[5 * shape.blocks()..6 * shape.blocks()].fill(1e-35);
        let weights: Vec<u8> = numbers(3, 20 * k).iter().map(|&v| v as u8).collect();
        let packed = LinearQ8::packed(shape, true, &weights, &scales, None);
        let y = product(amx, Linear::Q8(LinearQ8::new(shape, true, &packed)), 0..20, &x, k);
        for (i, y) in y.iter().enumerate() {
            let (t, r) = (i / 20, i % 20);
            let odd = [1, 2, 17].contains(&t) || r == 3;
            assert_eq!(
                y.is_nan() || y.is_infinite(),
                odd || r == 19 && t != 4 || y.is_nan(),
                "block {block}: y[{t}, {r}] = {y}"
            );
            assert!(t != 4 || r == 3 || r == 19 || *y == 0.0, "block {block}: y[{t}, {r}] = {y}");
            assert!(r != 5 || odd || y.abs() < 1e-30, "block {block}: y[{t}, {r}] = {y}");
        }
    }
}

#[test]
fn no_columns_give_zeros() {
    let Some(amx) = amx() else { return };
    let shape = LutShape { rows: 3, k: 32, bits: 4, row_groups: 1, col_groups: 1 };
    let packed = LinearLut::packed(shape, &[0; 48], &[0.5; 16]);
    let y = product(amx, Linear::Lut(LinearLut::new(shape, &packed)), 0..0, &[1.0; 16 * 32], 32);
    assert!(y.is_empty());
}

#[test]
fn what_follows_products_is_what_separate_steps_give() {
    let Some(amx) = amx() else { return };
    let isa = crate::Isa::detect();
    // More tokens than wait together, one chunk and several, and odd rows.
    for (n, rows, k) in [(37, 48, 64), (300, 50, 96), (290, 33, 1300)] {
        let shape = BlockShape { rows, k, block: k, scale: ScaleType::F32, offsets: false };
        let [gate, up] = [1, 2].map(|seed| {
            let weights: Vec<u8> = numbers(seed, rows * k).iter().map(|&v| v as u8).collect();
            LinearQ8::packed(shape, true, &weights, &vec![0.002; rows], None)
        });
        let [gate, up] = [&gate, &up].map(|packed| Linear::Q8(LinearQ8::new(shape, true, packed)));
        let x = floats(3, n * k);
        let mut bytes = vec![0; Tiles::bytes(n, k)];
        let x = Tiles::quantize(amx, &x, n, k, &mut bytes);
        let biases = [floats(4, rows), floats(5, rows)];
        let stride = rows + 3;
        let added = floats(6, n * stride);
        let run = |w: &Linear<'_>, range: Range<usize>, then: Then<'_>| {
            let mut out = vec![f32::NAN; n * range.len()];
            let width = range.len();
            w.matmul_tiles_columns(range, x, then, Columns::new(&mut out, width));
            out
        };
        for range in [0..rows, 16..rows] {
            let [first, second] = [&biases[0], &biases[1]].map(|bias| &bias[range.clone()]);
            let then = Then { bias: Some(first), added: Some((&added[range.start..], stride)) };
            let mut expected = run(&gate, range.clone(), Then::default());
            for (t, y) in expected.chunks_exact_mut(range.len()).enumerate() {
                for (r, y) in y.iter_mut().enumerate() {
                    *y = *y + first[r] + added[t * stride + range.start + r];
                }
            }
            same(&run(&gate, range.clone(), then), &expected, &format!("{n} tokens, rows {range:?} of {k}"));
            let mut expected = run(&gate, range.clone(), Then { bias: Some(first), added: None });
            let ups = run(&up, range.clone(), Then { bias: Some(second), added: None });
            for (y, up) in expected.chunks_exact_mut(range.len()).zip(ups.chunks_exact(range.len())) {
                crate::elementwise::binary_in_place(isa, crate::elementwise::Binary::SiluMul, y, up);
            }
            let mut out = vec![f32::NAN; n * range.len()];
            let columns = Columns::new(&mut out, range.len());
            Linear::gated_tiles_columns([&gate, &up], range.clone(), x, [Some(first), Some(second)], columns);
            same(&out, &expected, &format!("gated, {n} tokens, rows {range:?} of {k}"));
        }
    }
}
