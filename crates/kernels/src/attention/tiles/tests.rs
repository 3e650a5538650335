use super::super::tests::{for_each_mask, halves, reference, same, values};
use super::super::{Group, Keys, Mask, Queries, Rows};
use super::*;
use half::f16;

fn run(amx: Amx, group: &Group<'_, u16>) -> Vec<f32> {
    let (rows, dim) = (group.rows(), group.dim);
    let mut out = vec![f32::NAN; rows * dim];
    // What was in the scratch before does not matter, nor how it is aligned; what lies behind it is left alone.
    let need = scratch_len(rows, dim);
    let mut scratch = vec![f32::NAN; need + 4];
    attend(amx, group, &mut scratch[1..=need], &mut out);
    assert!(scratch[need + 1..].iter().chain(&scratch[..1]).all(|v| v.is_nan()));
    scratch.fill(1e30);
    let mut again = vec![f32::NAN; rows * dim];
    attend(amx, group, &mut scratch[..need], &mut again);
    same(&out, &again, "what was in the scratch before");
    out
}

#[test]
fn agrees_with_the_formula() {
    let Some(amx) = Amx::detect() else { return };
    for (heads, width, dim, len) in [
        (3, 17, 64, 300),
        (1, 33, 40, 257),
        (2, 20, 65, 513),
        (3, 64, 64, 700),
        (1, 1, 17, 1),
        (4, 18, 128, 40),
        (1, 5, 1, 31),
    ] {
        for_each_mask([heads, width, dim, len], &mut |wide, half| {
            for (i, (got, want)) in run(amx, half).iter().zip(&reference(wide)).enumerate() {
                let off = (f64::from(*got) - want).abs();
                assert!(off < 1e-4, "{heads} {width} {dim} {len} {:?} [{i}]: {got} {want}", half.mask);
            }
        });
    }
}

#[test]
fn the_bits_of_a_token_do_not_depend_on_the_others() {
    let Some(amx) = Amx::detect() else { return };
    let (heads, width, dim, first) = (3, 70, 64, 451);
    let len = first + width;
    let queries = values(1, heads * width * dim);
    let (keys, vals) = (halves(&values(2, len * dim)), halves(&values(3, len * dim)));
    let group = |t: usize, some: usize| Group {
        heads,
        width: some,
        dim,
        scale: 0.125,
        queries: Queries { data: &queries[t * dim..], head_stride: width * dim, token_stride: dim },
        keys: Keys::Rows(Rows { data: &keys[..], stride: dim }),
        values: Rows { data: &vals[..], stride: dim },
        len: first + t + some,
        mask: Mask::Causal { first: first + t },
    };
    let all = run(amx, &group(0, width));
    for (t, some) in [(0, 17), (3, 20), (31, 33), (40, 30), (69, 1)] {
        let few = run(amx, &group(t, some));
        for h in 0..heads {
            let among_all = &all[(h * width + t) * dim..][..some * dim];
            same(&few[h * some * dim..][..some * dim], among_all, &format!("{some} tokens from {t}, head {h}"));
        }
    }
}

#[test]
fn hostile_rows_stay_by_themselves() {
    let Some(amx) = Amx::detect() else { return };
    let (width, dim, len) = (20, 64, 600);
    let mut queries = values(1, width * dim);
    queries[dim] = f32::NAN;
    queries[4 * dim..5 * dim].fill(1e30);
    queries[5 * dim..6 * dim].fill(1e-40);
    queries[6 * dim..7 * dim].fill(-0.0);
    let (keys, vals) = (halves(&values(2, len * dim)), halves(&values(3, len * dim)));
    let mut mask = vec![0.0; width * len];
    mask[2 * len..3 * len].fill(f32::NEG_INFINITY);
    mask[3 * len..3 * len + 590].fill(f32::NEG_INFINITY);
    let out = run(
        amx,
        &Group {
            heads: 1,
            width,
            dim,
            scale: 0.2,
            queries: Queries { data: &queries, head_stride: 0, token_stride: dim },
            keys: Keys::Rows(Rows { data: &keys[..], stride: dim }),
            values: Rows { data: &vals[..], stride: dim },
            len,
            mask: Mask::Additive { values: &mask, stride: len },
        },
    );
    for (t, row) in out.chunks(dim).enumerate() {
        assert!(row.iter().all(|v| v.is_nan() == (t == 1 || t == 2)), "token {t}: {row:?}");
    }
    // Queries of nothing see all alike.
    for row in [5, 6] {
        for (d, got) in out[row * dim..][..dim].iter().enumerate() {
            let mean = (0..len).map(|p| f16::from_bits(vals[p * dim + d]).to_f64()).sum::<f64>() / len as f64;
            assert!((f64::from(*got) - mean).abs() < 1e-4, "{got} {mean}");
        }
    }
}
