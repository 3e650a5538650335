use super::*;
use half::f16;

pub(super) fn values(seed: usize, n: usize) -> Vec<f32> {
    (0..n).map(|i| (((i * 7919 + seed * 104_729) % 10_007) as f32 / 5000.0 - 1.0) * 1.5).collect()
}

pub(super) fn halves(values: &[f32]) -> Vec<u16> {
    values.iter().map(|&v| f16::from_f32(v).to_bits()).collect()
}

/// The formula, in f64.
pub(super) fn reference(group: &Group<'_, f32>) -> Vec<f64> {
    let mut out = Vec::new();
    for row in 0..group.rows() {
        let t = row % group.width;
        let scores: Vec<f64> = (0..group.len)
            .map(|p| {
                let Keys::Rows(keys) = group.keys else { unreachable!("the reference reads rows") };
                let key = &keys.data[p * keys.stride..][..group.dim];
                let dot: f64 = group.query(row).iter().zip(key).map(|(&q, &k)| f64::from(q) * f64::from(k)).sum();
                let mask = match group.mask {
                    Mask::Full => 0.0,
                    Mask::Causal { first } => {
                        if p <= first + t {
                            0.0
                        } else {
                            f64::NEG_INFINITY
                        }
                    }
                    Mask::UpTo { last } => match usize::try_from(last[t]) {
                        Ok(last) if p > last => f64::NEG_INFINITY,
                        _ => 0.0,
                    },
                    Mask::Additive { values, stride } => f64::from(values[t * stride + p]),
                };
                dot * f64::from(group.scale) + mask
            })
            .collect();
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = scores.iter().map(|s| (s - max).exp()).sum();
        for d in 0..group.dim {
            let weighted = scores.iter().enumerate();
            let value = |p: usize| f64::from(group.values.data[p * group.values.stride + d]);
            out.push(weighted.map(|(p, s)| (s - max).exp() / sum * value(p)).sum::<f64>());
        }
    }
    out
}

fn run<E: Element>(isa: Isa, group: &Group<'_, E>) -> Vec<f32> {
    let (rows, dim) = (group.rows(), group.dim);
    let mut scratch = vec![f32::NAN; scratch_len(rows, dim)];
    let mut out = vec![f32::NAN; rows * dim];
    attend(isa, group, &mut scratch, &mut out);
    // Block by block, from the last to the first, gives the same bits.
    let part = part_len(rows, dim);
    let mut parts = vec![f32::NAN; part * group.blocks()];
    for block in (0..group.blocks()).rev() {
        attend_block(isa, group, block, &mut scratch, &mut parts[block * part..][..part]);
    }
    let mut merged = vec![f32::NAN; rows * dim];
    merge(isa, rows, dim, &parts, part, &mut merged);
    same(&out, &merged, "split");
    out
}

pub(super) fn same(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(), "{what}: element {i}: {a} and {b} differ");
    }
}

/// Calls `check` with a group of so many heads, tokens, coordinates and positions under every kind of mask: over keys and values
/// in single floats, and over the same ones in halves, both with gaps.
pub(super) fn for_each_mask(
    [heads, width, dim, len]: [usize; 4],
    check: &mut dyn FnMut(&Group<'_, f32>, &Group<'_, u16>),
) {
    let stride = dim + 3;
    let queries = values(1, heads * width * dim);
    let (keys, vals) = (halves(&values(2, len * stride)), halves(&values(3, len * stride)));
    let wide = |v: &[u16]| v.iter().map(|&v| f16::from_bits(v).to_f32()).collect::<Vec<f32>>();
    let (wide_keys, wide_vals) = (wide(&keys), wide(&vals));
    let mut additive = values(4, width * (len + 1));
    additive.iter_mut().step_by(5).for_each(|v| *v = f32::NEG_INFINITY);
    additive.iter_mut().step_by(len + 1).for_each(|v| *v = 0.0);
    // One that sees all, then the first ones fewer and fewer.
    let last: Vec<i32> = (0..width).map(|t| if t % 3 == 1 { -1 } else { (len / (t + 1)) as i32 }).collect();
    for mask in [
        Mask::Full,
        Mask::Causal { first: len.saturating_sub(width) },
        Mask::Causal { first: 0 },
        Mask::UpTo { last: &last },
        Mask::Additive { values: &additive, stride: len + 1 },
    ] {
        let queries = Queries { data: &queries, head_stride: dim, token_stride: heads * dim };
        let scale = 1.0 / (dim as f32).sqrt();
        let (all, some) = (Rows { data: &wide_keys[..], stride }, Rows { data: &keys[..], stride });
        let group = Group {
            heads,
            width,
            dim,
            scale,
            queries,
            keys: all.into(),
            values: Rows { data: &wide_vals[..], stride },
            len,
            mask,
        };
        let half = Group {
            heads,
            width,
            dim,
            scale,
            queries,
            keys: some.into(),
            values: Rows { data: &vals[..], stride },
            len,
            mask,
        };
        check(&group, &half);
    }
}

#[test]
fn agrees_with_the_formula() {
    for (heads, width, dim, len) in [
        (1, 1, 1, 1),
        (3, 1, 64, 300),
        (3, 1, 64, 283),
        (2, 1, 40, 331),
        (1, 5, 40, 17),
        (2, 3, 16, 256),
        (4, 2, 65, 257),
        (3, 7, 64, 700),
        (1, 1, 128, 64),
        (2, 1, 32, 100),
        (4, 1, 16, 41),
    ] {
        for_each_mask([heads, width, dim, len], &mut |group, half| {
            let want = reference(group);
            let scalar = run(Isa::Scalar, group);
            for (i, (got, want)) in scalar.iter().zip(&want).enumerate() {
                assert!((f64::from(*got) - want).abs() < 2e-5, "{heads} {width} {dim} {len} [{i}]: {got} {want}");
            }
            let Keys::Rows(keys) = half.keys else { unreachable!("keys are rows") };
            for isa in Isa::available() {
                let what = format!("{} {heads} {width} {dim} {len}", isa.name());
                same(&run(isa, group), &scalar, &what);
                same(&run(isa, half), &scalar, &what);
                let mut turned = vec![0x7e00; len.next_multiple_of(16) * dim];
                for p in 0..len {
                    for d in 0..dim {
                        turned[turned_at(dim, p) + 16 * d] = keys.data[p * keys.stride + d];
                    }
                }
                same(&run(isa, &Group { keys: Keys::Turned(&turned), ..*half }), &scalar, &what);
            }
        });
    }
}

#[test]
fn many_tokens_are_as_many_single_ones() {
    let (heads, width, dim, first) = (3, 9, 64, 251);
    let len = first + width;
    let queries = values(1, heads * width * dim);
    let (keys, vals) = (halves(&values(2, len * dim)), halves(&values(3, len * dim)));
    let group = |t: usize, width: usize| Group {
        heads,
        width,
        dim,
        scale: 0.125,
        queries: Queries { data: &queries[t * dim..], head_stride: 9 * dim, token_stride: dim },
        keys: Keys::Rows(Rows { data: &keys[..], stride: dim }),
        values: Rows { data: &vals[..], stride: dim },
        len: first + t + width,
        mask: Mask::Causal { first: first + t },
    };
    for isa in Isa::available() {
        let all = run(isa, &group(0, width));
        for t in 0..width {
            let one = run(isa, &group(t, 1));
            for h in 0..heads {
                same(&one[h * dim..(h + 1) * dim], &all[(h * width + t) * dim..][..dim], isa.name());
            }
        }
    }
}

#[test]
fn hostile_rows_stay_by_themselves() {
    let (width, dim, len) = (4, 20, 300);
    let mut queries = values(1, width * dim);
    queries[dim] = f32::NAN;
    let (keys, vals) = (values(2, len * dim), values(3, len * dim));
    let mut mask = vec![0.0; width * len];
    mask[2 * len..3 * len].fill(f32::NEG_INFINITY);
    mask[3 * len..3 * len + 290].fill(f32::NEG_INFINITY);
    for isa in Isa::available() {
        let group = Group {
            heads: 1,
            width,
            dim,
            scale: 0.2,
            queries: Queries { data: &queries, head_stride: 0, token_stride: dim },
            keys: Keys::Rows(Rows { data: &keys[..], stride: dim }),
            values: Rows { data: &vals[..], stride: dim },
            len,
            mask: Mask::Additive { values: &mask, stride: len },
        };
        let out = run(isa, &group);
        for (t, row) in out.chunks(dim).enumerate() {
            assert!(row.iter().all(|v| v.is_nan() == (t == 1 || t == 2)), "{} token {t}: {row:?}", isa.name());
        }
        // The last token sees only the last ten positions, in the second block.
        let last = Group {
            width: 1,
            queries: Queries { data: &queries[3 * dim..], ..group.queries },
            mask: Mask::Additive { values: &mask[3 * len..], stride: len },
            ..group
        };
        for (got, want) in out[3 * dim..].iter().zip(reference(&last)) {
            assert!((f64::from(*got) - want).abs() < 1e-5);
        }
    }
}

#[test]
#[should_panic(expected = "of keys")]
fn short_keys_are_refused() {
    let group = Group {
        heads: 1,
        width: 1,
        dim: 4,
        scale: 1.0,
        queries: Queries { data: &[0.0; 4], head_stride: 0, token_stride: 0 },
        keys: Keys::Rows(Rows { data: &[0.0_f32; 7], stride: 4 }),
        values: Rows { data: &[0.0_f32; 8], stride: 4 },
        len: 2,
        mask: Mask::Full,
    };
    run(Isa::Scalar, &group);
}
