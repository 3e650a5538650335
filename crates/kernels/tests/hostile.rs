//! Every family of kernels on odd sizes, with numbers that are none, infinite, tiny, huge and negative zeros, between sentinels:
//! every instruction set gives the bits of the plain one, and nothing is written beside the results.

use anemone_kernels::Isa;
use anemone_kernels::attention::{Group, Keys, Mask, Queries, Rows, attend, scratch_len};
use anemone_kernels::convert::{f16_to_f32, f32_to_f16};
use anemone_kernels::elementwise::{Binary, affine_in_place, binary, binary_in_place};
use anemone_kernels::linear::{
    Activations, BlockShape, Linear, LinearF16, LinearF32, LinearLut, LinearQ4, LinearQ8, LutShape, ScaleType,
};
use anemone_kernels::norm::{layer_norm, rms_norm};
use anemone_kernels::reduce;
use anemone_kernels::rope::rope_half;
use anemone_kernels::softmax::softmax;

/// No kernel computes these bits: those of a number that is none.
const SENTINEL: u32 = 0x7fa5_5aa5;
/// Sentinels on each side: more than a vector.
const BESIDE: usize = 19;

/// What `f` writes into so many values that lie between sentinels.
fn between(n: usize, what: &str, f: impl FnOnce(&mut [f32])) -> Vec<f32> {
    let mut all = vec![f32::from_bits(SENTINEL); n + 2 * BESIDE];
    f(&mut all[BESIDE..BESIDE + n]);
    let beside = all[..BESIDE].iter().chain(&all[BESIDE + n..]);
    assert!(beside.into_iter().all(|v| v.to_bits() == SENTINEL), "{what}: a sentinel is gone");
    all[BESIDE..BESIDE + n].to_vec()
}

/// Runs `f` on every instruction set and compares with the plain one. Signs and payloads of NaNs are not promised.
fn everywhere(n: usize, what: &str, mut f: impl FnMut(Isa, &mut [f32])) {
    let want = between(n, what, |out| f(Isa::Scalar, out));
    for isa in Isa::available() {
        let got = between(n, &format!("{what} {}", isa.name()), |out| f(isa, out));
        for (i, (a, b)) in want.iter().zip(&got).enumerate() {
            let same = a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            assert!(same, "{what} {}: element {i} is {b}, not {a}", isa.name());
        }
    }
}

fn floats(seed: usize, n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919 + seed * 104_729) % 10_007) as f32 / 5000.0 - 1.0).collect()
}

/// Rows of `k`: one as it is, then one of each kind of hostile values.
fn hostile(k: usize) -> (Vec<f32>, usize) {
    const KINDS: [f32; 7] = [0.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, -0.0, f32::MAX];
    let mut x = floats(3, KINDS.len() * k);
    for (row, kind) in x.chunks_mut(k).zip(KINDS) {
        // The first, the last, and some between; tiny ones and zeros all along.
        let step = if kind.abs() < 1e-30 { 1 } else { 13 };
        row.iter_mut().step_by(step).for_each(|v| *v = kind);
        row[k - 1] = kind;
    }
    (x, KINDS.len())
}

fn product(linear: Linear<'_>, what: &str) {
    let (rows, k) = (linear.rows(), linear.k());
    let (x, n) = hostile(k);
    everywhere(n * rows, what, |isa, out| linear.matmul(isa, 0..rows, &x, n, out));
    if linear.has_int8() {
        everywhere(n * rows, &format!("{what} in integers"), |isa, out| {
            let mut bytes = vec![0xa5; Activations::bytes(n, k)];
            let activations = Activations::quantize(isa, &x, n, k, &mut bytes);
            linear.matmul_int8(isa, 0..rows, activations, out);
        });
    }
}

#[test]
fn products() {
    for (rows, k) in [(1, 1), (17, 33), (40, 70), (33, 160)] {
        let mut w = floats(5, rows * k);
        w[rows * k / 2] = f32::INFINITY;
        w[rows * k - 1] = f32::NAN;
        w[0] = -0.0;
        let bytes = LinearF32::packed(rows, k, &w);
        product(Linear::F32(LinearF32::new(rows, k, &bytes)), &format!("f32 {rows} x {k}"));
        let halves: Vec<u16> = w.iter().map(|&v| half::f16::from_f32(v).to_bits()).collect();
        let bytes = LinearF16::packed(rows, k, &halves);
        product(Linear::F16(LinearF16::new(rows, k, &bytes)), &format!("f16 {rows} x {k}"));
    }
    for (rows, k, block) in [(1, 1, 1), (17, 33, 33), (40, 96, 32), (33, 160, 160)] {
        for (signed, offsets, scale) in [(true, false, ScaleType::F16), (false, true, ScaleType::F32)] {
            let shape = BlockShape { rows, k, block, scale, offsets };
            let mut scales = floats(7, rows * shape.blocks());
            for (i, kind) in [f32::INFINITY, f32::NAN, 1e-7, -0.0].into_iter().enumerate() {
                let at = (i * 5 + 1) % scales.len();
                scales[at] = kind;
            }
            let zeros: Option<Vec<f32>> = offsets.then(|| (0..scales.len()).map(|i| (i % 5) as f32).collect());
            let weights: Vec<u8> = (0..rows * k).map(|i| (i * 37 % 256) as u8).collect();
            let bytes = LinearQ8::packed(shape, signed, &weights, &scales, zeros.as_deref());
            product(Linear::Q8(LinearQ8::new(shape, signed, &bytes)), &format!("q8 {shape:?}"));
            let weights = &weights[..(rows * k).div_ceil(2)];
            let bytes = LinearQ4::packed(shape, signed, weights, &scales, zeros.as_deref());
            product(Linear::Q4(LinearQ4::new(shape, signed, &bytes)), &format!("q4 {shape:?}"));
        }
    }
    for (rows, k, row_groups) in [(1, 1, 1), (17, 40, 1), (64, 70, 8), (36, 100, 3)] {
        for bits in [1, 2, 3, 4, 6, 8] {
            let shape = LutShape { rows, k, bits, row_groups, col_groups: 1 };
            let mut tables = floats(9, row_groups << bits);
            tables[0] = f32::NAN;
            *tables.last_mut().unwrap() = f32::INFINITY;
            let indices: Vec<u8> = (0..(rows * k * bits).div_ceil(8)).map(|i| (i * 89 % 256) as u8).collect();
            let bytes = LinearLut::packed(shape, &indices, &tables);
            product(Linear::Lut(LinearLut::new(shape, &bytes)), &format!("{shape:?}"));
        }
    }
}

#[test]
fn attention() {
    for (heads, dim, len) in [(1, 1, 1), (3, 20, 37), (2, 65, 300)] {
        let (queries, width) = hostile(heads * dim);
        let mut keys = floats(2, len * dim);
        let mut values = floats(4, len * dim);
        // Values that some rows do not see must be numbers: they are multiplied by zero.
        keys[len * dim / 2] = f32::INFINITY;
        values[len * dim - 1] = 65_504.0;
        values[0] = -0.0;
        let halves = |v: &[f32]| v.iter().map(|&v| half::f16::from_f32(v).to_bits()).collect::<Vec<_>>();
        let (keys, values) = (halves(&keys), halves(&values));
        let mut additive = vec![0.0; width * len];
        additive.iter_mut().step_by(3).for_each(|v| *v = f32::NEG_INFINITY);
        additive[len - 1] = f32::NAN;
        for mask in [
            Mask::Full,
            Mask::Causal { first: len.saturating_sub(width) },
            Mask::Additive { values: &additive, stride: len },
        ] {
            let group = Group {
                heads,
                width,
                dim,
                scale: 0.3,
                queries: Queries { data: &queries, head_stride: dim, token_stride: heads * dim },
                keys: Keys::Rows(Rows { data: &keys[..], stride: dim }),
                values: Rows { data: &values[..], stride: dim },
                len,
                mask,
            };
            let (rows, what) = (heads * width, format!("attention {heads} {dim} {len} {mask:?}"));
            everywhere(rows * dim, &what[..what.len().min(60)], |isa, out| {
                let scratch = between(scratch_len(rows, dim), "scratch", |scratch| attend(isa, &group, scratch, out));
                drop(scratch);
            });
        }
    }
}

#[test]
fn rows() {
    for k in [1, 15, 16, 17, 33, 70, 577] {
        let (x, n) = hostile(k);
        let (weight, bias) = (floats(5, k), floats(6, k));
        everywhere(n * k, &format!("rms norm of {k}"), |isa, out| rms_norm(isa, &x, &weight, 1e-5, out));
        everywhere(n * k, &format!("layer norm of {k}"), |isa, out| layer_norm(isa, &x, &weight, &bias, 1e-5, out));
        everywhere(n * k, &format!("softmax of {k}"), |isa, out| {
            out.copy_from_slice(&x);
            softmax(isa, out, k);
        });
        everywhere(n * k, &format!("affine of {k}"), |isa, out| {
            out.copy_from_slice(&x);
            affine_in_place(isa, out, -3.0, 0.25);
        });
        let (cos, sin) = (floats(7, k / 2), floats(8, k / 2));
        everywhere(n * k, &format!("rope of {k}"), |isa, out| {
            out.copy_from_slice(&x);
            rope_half(isa, out, k, [&cos, &cos], [&sin, &sin]);
        });
        let mut other = x.clone();
        other.reverse();
        for op in [Binary::SiluMul, Binary::GeluMul, Binary::GeluTanhMul, Binary::Max, Binary::Min, Binary::Div] {
            everywhere(n * k, &format!("{op:?} of {k}"), |isa, out| binary(isa, op, &x, &other, out));
            everywhere(n * k, &format!("{op:?} in place of {k}"), |isa, out| {
                out.copy_from_slice(&x);
                binary_in_place(isa, op, out, &other);
            });
        }
        everywhere(3, &format!("sums of {k}"), |isa, out| {
            out.copy_from_slice(&[reduce::sum(isa, &x), reduce::sum_squares(isa, &x[..k]), reduce::max(isa, &x)]);
        });
        everywhere(n * k, &format!("halves of {k}"), |isa, out| {
            let mut halves = vec![0x5aa5_u16; n * k + 2];
            f32_to_f16(isa, &x, &mut halves[1..=n * k]);
            assert_eq!([halves[0], halves[n * k + 1]], [0x5aa5; 2], "{} {k}", isa.name());
            f16_to_f32(isa, &halves[1..=n * k], out);
        });
    }
}
