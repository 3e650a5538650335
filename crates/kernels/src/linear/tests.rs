use super::noise::same;
use super::*;
use half::f16;

/// A small generator: the tests need variety, not quality.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }
    fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.float()).collect()
    }
    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }
}

/// Checks `linear` against the dense matrix it stands for, on every instruction set, whole and in parts.
fn agrees(linear: Linear<'_>, dense: &[f32], what: &str) {
    let (rows, k) = (linear.rows(), linear.k());
    let mut numbers = Numbers(77);
    for n in [1, 2, 3, 5, 9, 16] {
        let x = numbers.floats(n * k);
        let mut first: Option<Vec<f32>> = None;
        for isa in Isa::available() {
            let what = format!("{what} {} n {n}", isa.name());
            let mut out = vec![f32::NAN; n * rows];
            linear.matmul(isa, 0..rows, &x, n, &mut out);
            for t in 0..n {
                for r in 0..rows {
                    let pairs =
                        || x[t * k..].iter().zip(&dense[r * k..]).take(k).map(|(&x, &w)| f64::from(x) * f64::from(w));
                    let (want, size) = (pairs().sum::<f64>(), pairs().map(f64::abs).sum::<f64>());
                    let got = f64::from(out[t * rows + r]);
                    assert!((got - want).abs() <= size * 2e-6 + 1e-30, "{what}: y[{t}, {r}] = {got}, not {want}");
                }
            }
            let first = first.get_or_insert_with(|| out.clone());
            same(first, &out, &what);
            // Token by token, and panel by panel.
            for t in 0..n {
                let mut one = vec![f32::NAN; rows];
                linear.matmul(isa, 0..rows, &x[t * k..(t + 1) * k], 1, &mut one);
                same(&one, &out[t * rows..(t + 1) * rows], &what);
            }
            for start in (0..rows).step_by(PANEL) {
                let range = start..rows.min(start + PANEL);
                let mut tile = vec![f32::NAN; n * range.len()];
                linear.matmul(isa, range.clone(), &x, n, &mut tile);
                for t in 0..n {
                    let whole = &out[t * rows..][range.clone()];
                    same(&tile[t * range.len()..(t + 1) * range.len()], whole, &what);
                }
            }
        }
    }
}

const SIZES: [(usize, usize); 6] = [(1, 1), (16, 32), (17, 40), (48, 64), (50, 100), (33, 257)];

#[test]
fn floats() {
    for (rows, k) in SIZES {
        let dense = Numbers(3).floats(rows * k);
        let bytes = LinearF32::packed(rows, k, &dense);
        agrees(Linear::F32(LinearF32::new(rows, k, &bytes)), &dense, &format!("f32 {rows} x {k}"));
        let half: Vec<u16> = dense.iter().map(|&v| f16::from_f32(v).to_bits()).collect();
        let dense: Vec<f32> = half.iter().map(|&v| f16::from_bits(v).to_f32()).collect();
        let bytes = LinearF16::packed(rows, k, &half);
        assert_eq!(bytes.as_ptr().addr() % 64, 0);
        agrees(Linear::F16(LinearF16::new(rows, k, &bytes)), &dense, &format!("f16 {rows} x {k}"));
    }
}

#[test]
fn integers() {
    let shapes = [(1, 1, 1), (17, 40, 40), (48, 64, 32), (50, 96, 96), (33, 256, 128), (19, 48, 16), (16, 257, 257)];
    for (rows, k, block) in shapes {
        for (signed, offsets, scale) in [
            (true, false, ScaleType::F16),
            (false, false, ScaleType::F32),
            (true, true, ScaleType::F32),
            (false, true, ScaleType::F16),
        ] {
            let mut numbers = Numbers(5);
            let shape = BlockShape { rows, k, block, scale, offsets };
            let count = rows * shape.blocks();
            let scales: Vec<f32> = numbers.floats(count).iter().map(|v| f16::from_f32(v * 0.01).to_f32()).collect();
            for bits in [4, 8] {
                let what = format!("q{bits} {shape:?} signed {signed}");
                let offset: Option<Vec<f32>> = offsets.then(|| {
                    let half = if signed { 0 } else { 1 << (bits - 1) };
                    (0..count).map(|_| (half + (numbers.next() % 7) as i32 - 3) as f32).collect()
                });
                let weights = numbers.bytes((rows * k * bits).div_ceil(8));
                let dense: Vec<f32> = (0..rows * k)
                    .map(|i| {
                        let unsigned = if bits == 4 { weights[i / 2] >> (i % 2 * 4) & 15 } else { weights[i] };
                        let q = if signed { (unsigned << (8 - bits)) as i8 >> (8 - bits) } else { 0 };
                        let q = if signed { f32::from(q) } else { f32::from(unsigned) };
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
fn palettes() {
    for (rows, k, row_groups, col_groups) in
        [(1, 1, 1, 1), (17, 40, 1, 1), (48, 64, 3, 2), (64, 64, 8, 1), (24, 96, 24, 3), (72, 32, 3, 1), (50, 100, 5, 1)]
    {
        for bits in [1, 2, 3, 4, 6, 8] {
            let shape = LutShape { rows, k, bits, row_groups, col_groups };
            let mut numbers = Numbers(9);
            let tables = numbers.floats((row_groups * col_groups) << bits);
            let indices = numbers.bytes((rows * k * bits).div_ceil(8));
            let dense: Vec<f32> = (0..rows * k)
                .map(|i| {
                    let bit = |b: usize| usize::from(indices[(i * bits + b) / 8] >> ((i * bits + b) % 8) & 1) << b;
                    let index: usize = (0..bits).map(bit).sum();
                    let group = i / k / (rows / row_groups) * col_groups + i % k / (k / col_groups);
                    tables[(group << bits) + index]
                })
                .collect();
            let bytes = LinearLut::packed(shape, &indices, &tables);
            agrees(Linear::Lut(LinearLut::new(shape, &bytes)), &dense, &format!("{shape:?}"));
        }
    }
}

#[test]
fn hostile_values_stay_in_their_row_and_token() {
    let (rows, k, n) = (40, 70, 5);
    let mut dense = Numbers(11).floats(rows * k);
    dense[3 * k + 5] = f32::NAN;
    dense[20 * k + 69] = f32::INFINITY;
    let mut x = Numbers(12).floats(n * k);
    x[2 * k + 9] = f32::NAN;
    x[4 * k] = f32::NEG_INFINITY;
    let bytes = LinearF32::packed(rows, k, &dense);
    let linear = LinearF32::new(rows, k, &bytes);
    for isa in Isa::available() {
        let mut out = vec![0.0; n * rows];
        linear.matmul(isa, 0..rows, &x, n, &mut out);
        for t in 0..n {
            for r in 0..rows {
                let got = out[t * rows + r];
                let nan = t == 2 || r == 3;
                assert_eq!(got.is_nan(), nan, "{} y[{t}, {r}] = {got}", isa.name());
                assert_eq!(got.is_infinite(), !nan && (t == 4 || r == 20), "{} y[{t}, {r}] = {got}", isa.name());
            }
        }
    }
}

#[test]
#[should_panic(expected = "start inside a panel")]
fn rows_from_inside_a_panel_are_refused() {
    let bytes = LinearF32::packed(32, 1, &[0.0; 32]);
    LinearF32::new(32, 1, &bytes).matmul(Isa::Scalar, 8..32, &[0.0], 1, &mut [0.0; 24]);
}

#[test]
#[should_panic(expected = "x has 1 values")]
fn a_short_x_is_refused() {
    let bytes = LinearF32::packed(32, 2, &[0.0; 64]);
    LinearF32::new(32, 2, &bytes).matmul(Isa::Scalar, 0..32, &[0.0], 1, &mut [0.0; 32]);
}

#[test]
fn packing_does_not_grow() {
    let shape = BlockShape { rows: 1536, k: 576, block: 32, scale: ScaleType::F16, offsets: false };
    assert_eq!(LinearQ4::packed_len(shape), 1536 * 576 / 32 * 18);
    assert_eq!(LinearQ8::packed_len(shape), 1536 * 576 / 32 * 34);
    assert_eq!(LinearF16::packed_len(1536, 576), 1536 * 576 * 2);
    let shape = LutShape { rows: 1536, k: 576, bits: 4, row_groups: 1536 / 16, col_groups: 1 };
    assert_eq!(LinearLut::packed_len(shape), 1536 * 576 / 2 + 1536 / 16 * (64 + 192));
}

#[test]
fn panels_are_packed_one_by_one_as_all_together() {
    for (rows, k) in [(1, 1), (16, 32), (17, 33), (40, 5)] {
        let w: Vec<f32> = (0..rows * k).map(|i| i as f32 + 0.5).collect();
        let turned: Vec<f32> = (0..rows * k).map(|i| w[i % rows * k + i / rows]).collect();
        let all = LinearF32::packed(rows, k, &w);
        let panel = LinearF32::packed_len(PANEL, k);
        for (index, expected) in all.chunks_exact(panel).enumerate() {
            for (w, turned) in [(&w, false), (&turned, true)] {
                let mut bytes = vec![0xa5; panel];
                LinearF32::pack_panel(index, rows, k, w, turned, &mut bytes);
                assert_eq!(bytes, expected, "{rows} x {k}, panel {index}, turned {turned}");
            }
        }
    }
}
