//! Attention as tools spell it, fused in plans: the same as the interpreter computes without fusing anything. What only
//! looks like attention stays what it is.

#[path = "common/program.rs"]
mod program;

use anemone_cpu::{Plan, PlanOptions};
use anemone_mil::interpret::Tensors;
use anemone_mil::lower::PackCache;
use anemone_mil::{DType, Function, Tensor, ValueId};
use program::{Both, Build, halves};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    None,
    Mul,
    MulFirst,
    Div,
}

/// Where keys and values lie.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cache {
    /// In inputs, single floats in memory.
    Inputs,
    /// In one state, as views of it.
    State,
    /// Keys in the state, values in an input.
    Keys,
    /// Values in the state, keys in an input.
    Values,
}

/// How a mask is added.
#[derive(Clone, Debug, PartialEq)]
enum MaskAs {
    Second(Vec<usize>),
    First(Vec<usize>),
}

/// One spelling of attention over 10 positions of 8 numbers.
#[derive(Clone, Debug)]
struct Spelling {
    heads: usize,
    kv_heads: usize,
    tokens: usize,
    scale: Scale,
    mask: Option<MaskAs>,
    cache: Cache,
    axis: i32,
    /// A value inside that is an output as well.
    also: &'static str,
}

const LEN: usize = 10;
const DIM: usize = 8;

fn n(n: usize) -> i32 {
    i32::try_from(n).unwrap()
}

impl Spelling {
    fn new() -> Self {
        let mask = Some(MaskAs::Second(vec![1, 1, 3, LEN]));
        Self { heads: 4, kv_heads: 4, tokens: 3, scale: Scale::Mul, mask, cache: Cache::Inputs, axis: -1, also: "" }
    }

    fn cache_shape(&self) -> [usize; 4] {
        [2, self.kv_heads, LEN, DIM]
    }

    fn build(&self) -> Function {
        let mut b = Build::new();
        let (h, kv, t) = (n(self.heads), n(self.kv_heads), n(self.tokens));
        let q = b.input("q", &[1, self.heads, self.tokens, DIM]);
        let state = b.state("cache", &self.cache_shape());
        let all = b.read("all", state);
        let mut side = |name: &str, row: i32, in_state: bool| match in_state {
            true => b.slice(name, all, &[row, 0, 0, 0], &[row + 1, kv, n(LEN), n(DIM)]),
            false => b.input(name, &[1, self.kv_heads, LEN, DIM]),
        };
        let k = side("k", 0, matches!(self.cache, Cache::State | Cache::Keys));
        let v = side("v", 1, matches!(self.cache, Cache::State | Cache::Values));
        // Grouped heads: those that share keys go into the rows.
        let grouped = h != kv;
        let q = if grouped { b.reshape("q_rows", q, &[1, kv, h / kv * t, n(DIM)]) } else { q };
        let mut x = b.op("matmul", "scores", &[("x", q.into()), ("y", k.into()), ("transpose_y", true.into())]);
        let c = |v: f32| half::f16::from_f32(v).into();
        x = match self.scale {
            Scale::None => x,
            Scale::Mul => b.op("mul", "scaled", &[("x", x.into()), ("y", c(0.25))]),
            Scale::MulFirst => b.op("mul", "scaled", &[("x", c(0.25)), ("y", x.into())]),
            Scale::Div => b.op("real_div", "scaled", &[("x", x.into()), ("y", c(4.0))]),
        };
        let inside = if self.also == "scaled" { vec![x] } else { vec![] };
        if grouped && self.mask.is_some() {
            x = b.reshape("by_head", x, &[1, h, t, n(LEN)]);
        }
        if let Some(MaskAs::Second(shape) | MaskAs::First(shape)) = &self.mask {
            let mask = b.input("mask", shape);
            let first = matches!(self.mask, Some(MaskAs::First(_)));
            x = if first { b.add("masked", mask, x) } else { b.add("masked", x, mask) };
        }
        x = b.op("softmax", "weights", &[("x", x.into()), ("axis", self.axis.into())]);
        let inside = if self.also == "weights" { vec![x] } else { inside };
        if grouped && self.mask.is_some() {
            x = b.reshape("by_group", x, &[1, kv, h / kv * t, n(LEN)]);
        }
        x = b.op("matmul", "mixed", &[("x", x.into()), ("y", v.into())]);
        x = if grouped { b.reshape("out", x, &[1, h, t, n(DIM)]) } else { x };
        let outputs: Vec<ValueId> = [vec![x], inside].concat();
        b.finish(&outputs)
    }

    fn check(&self, fused: bool) -> Result<(), String> {
        let f = self.build();
        check(&f, fused, &self.cache_shape()).map_err(|e| format!("{self:?}: {e}"))
    }
}

/// Runs a program over `cache` twice, with inputs that look random.
fn check(f: &Function, fused: bool, cache: &[usize]) -> Result<(), String> {
    let mut both = Both::new(f)?;
    if both.plan().to_string().contains("fused into `attention`") != fused {
        return Err(format!("expected {}fused:\n{}", if fused { "" } else { "not " }, both.plan()));
    }
    both.set_state("cache", &halves(5, cache));
    for run in 0..2 {
        let inputs: Tensors = f
            .inputs
            .iter()
            .filter_map(|&id| {
                let v = f.value(id);
                let ty = v.ty.tensor()?.to_static()?;
                Some((v.name.clone(), if v.name == "mask" { mask(&ty.shape) } else { halves(id.0.into(), &ty.shape) }))
            })
            .collect();
        both.run(&inputs, 1e-5)?.map_err(|e| format!("run {run}: {e}"))?;
    }
    Ok(())
}

/// Hides from row `i` of the tokens what lies beyond position `3 + i`, and from every row position 1.
fn mask(shape: &[usize]) -> Tensor {
    let (rows, width) = (shape[..shape.len() - 1].iter().product::<usize>(), shape[shape.len() - 1]);
    let tokens = if shape.len() > 1 { shape[shape.len() - 2] } else { 1 };
    let hidden = |i: usize, p: usize| p == 1 || p > 3 + i % tokens;
    let all: Vec<f32> =
        (0..rows).flat_map(|i| (0..width).map(move |p| if hidden(i, p) { -1e4 } else { 0.125 * p as f32 })).collect();
    Tensor::floats(DType::F16, shape, &all)
}

fn report(results: impl IntoIterator<Item = Result<(), String>>) {
    let wrong: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_spelling_is_fused_and_means_the_same() {
    let mut all = Vec::new();
    for cache in [Cache::Inputs, Cache::State, Cache::Keys, Cache::Values] {
        for (heads, kv_heads) in [(4, 4), (6, 2)] {
            for tokens in [1, 3] {
                for scale in [Scale::None, Scale::Mul, Scale::MulFirst, Scale::Div] {
                    let mask = Some(MaskAs::Second(vec![1, 1, tokens, LEN]));
                    all.push(Spelling { heads, kv_heads, tokens, scale, mask, cache, ..Spelling::new() });
                }
            }
        }
    }
    report(all.iter().map(|s| s.check(true)));
}

#[test]
fn masks_of_every_rank_or_none_are_fused() {
    let masks = [&[3, LEN][..], &[1, 3, LEN], &[1, 1, 3, LEN], &[1, LEN], &[1, 1, 1, LEN], &[LEN]];
    let mut all = vec![Spelling { mask: None, ..Spelling::new() }];
    for shape in masks {
        for mask in [MaskAs::Second(shape.to_vec()), MaskAs::First(shape.to_vec())] {
            all.push(Spelling { mask: Some(mask), ..Spelling::new() });
        }
    }
    let grouped = all.iter().map(|s| Spelling { heads: 6, kv_heads: 2, cache: Cache::State, ..s.clone() });
    let all: Vec<Spelling> = grouped.chain(all.iter().cloned()).collect();
    report(all.iter().map(|s| s.check(true)));
}

/// `scaled_dot_product_attention`, keys and values of the state repeated for the heads that share them.
fn published(heads: usize, kv_heads: usize, tokens: usize, mask: Option<&[usize]>, reps: [i32; 5]) -> Function {
    let mut b = Build::new();
    let q = b.input("q", &[1, heads, tokens, DIM]);
    let state = b.state("cache", &[2, kv_heads, LEN, DIM]);
    let all = b.read("all", state);
    let mut side = |name: &str, row: i32| {
        let x = b.slice(name, all, &[row, 0, 0, 0], &[row + 1, n(kv_heads), n(LEN), n(DIM)]);
        if heads == kv_heads {
            return x;
        }
        let x = b.op("expand_dims", &format!("{name}_wide"), &[("x", x.into()), ("axes", [2].into())]);
        let x = b.op("tile", &format!("{name}_tiled"), &[("x", x.into()), ("reps", reps.into())]);
        b.reshape(&format!("{name}_repeated"), x, &[1, n(heads), n(LEN), n(DIM)])
    };
    let (k, v) = (side("k", 0), side("v", 1));
    let mut args = vec![("query", q.into()), ("key", k.into()), ("value", v.into())];
    if let Some(shape) = mask {
        args.push(("attn_mask", b.input("mask", shape).into()));
    }
    let out = b.op("scaled_dot_product_attention", "out", &args);
    b.finish(&[out])
}

#[test]
fn attention_in_one_operation_is_fused_with_what_repeats_its_heads() {
    let mut results = Vec::new();
    for tokens in [1, 3] {
        for mask in [None, Some(&[1, 1, tokens, LEN][..]), Some(&[tokens, LEN])] {
            for (heads, kv_heads) in [(4, 4), (6, 2)] {
                let f = published(heads, kv_heads, tokens, mask, [1, 1, 3, 1, 1]);
                let what = format!("{tokens} tokens, mask {mask:?}, {heads} heads over {kv_heads}");
                results.push(check(&f, true, &[2, kv_heads, LEN, DIM]).map_err(|e| format!("{what}: {e}")));
                let plan = Plan::new(&f, &PlanOptions::default(), &PackCache::default()).unwrap();
                assert!(plan.notes().is_empty(), "{what}: {:?}\n{plan}", plan.notes());
            }
        }
    }
    // Heads that share keys do not stand next to each other.
    results.push(check(&published(6, 2, 3, None, [1, 3, 1, 1, 1]), false, &[2, 2, LEN, DIM]));
    results.push(check(&published(4, 4, 3, Some(&[1, 4, 3, LEN]), [1; 5]), false, &[2, 4, LEN, DIM]));
    report(results);
}

#[test]
fn a_row_that_sees_nothing_is_zero_in_one_operation() {
    let f = published(6, 2, 3, Some(&[1, 1, 3, LEN]), [1, 1, 3, 1, 1]);
    let mut both = Both::new(&f).unwrap();
    both.set_state("cache", &halves(5, &[2, 2, LEN, DIM]));
    let mut mask = vec![0.0; 3 * LEN];
    mask[LEN..2 * LEN].fill(f32::NEG_INFINITY);
    let inputs = program::named([
        ("q", halves(1, &[1, 6, 3, DIM])),
        ("mask", Tensor::floats(DType::F16, &[1, 1, 3, LEN], &mask)),
    ]);
    let out = both.run(&inputs, 1e-5).unwrap().unwrap();
    assert!(out["out"].as_f32().unwrap()[DIM..2 * DIM].iter().all(|&v| v == 0.0));
}

#[test]
fn what_others_want_of_the_inside_is_still_computed() {
    report(["scaled", "weights"].map(|also| Spelling { also, cache: Cache::State, ..Spelling::new() }.check(true)));
}

#[test]
fn what_only_looks_like_attention_is_left_alone() {
    let masks = [
        // One for each head, and a number for all positions.
        vec![1, 4, 3, LEN],
        vec![1, 1, 3, 1],
    ];
    let masks = masks.map(|shape| Spelling { mask: Some(MaskAs::Second(shape)), ..Spelling::new() });
    let axes = [0, 1, 2, -2].map(|axis| Spelling { axis, ..Spelling::new() });
    report(masks.iter().chain(&axes).map(|s| s.check(false)));
}

/// Four heads of three tokens, `k` and `v` as inputs; the rest differs.
fn around(program: impl Fn(&mut Build, ValueId, ValueId, ValueId) -> ValueId, k: &[usize], v: &[usize]) -> Function {
    let mut b = Build::new();
    let (q, k, v) = (b.input("q", &[1, 4, 3, DIM]), b.input("k", k), b.input("v", v));
    b.state("cache", &[1]);
    let out = program(&mut b, q, k, v);
    b.finish(&[out])
}

fn softmax(b: &mut Build, x: ValueId) -> ValueId {
    b.op("softmax", "weights", &[("x", x.into()), ("axis", (-1).into())])
}

fn matmul(b: &mut Build, name: &str, x: ValueId, y: ValueId, transposed: [bool; 2]) -> ValueId {
    let [tx, ty] = transposed.map(Into::into);
    b.op("matmul", name, &[("x", x.into()), ("y", y.into()), ("transpose_x", tx), ("transpose_y", ty)])
}

#[test]
fn other_transpositions_and_shapes_are_left_alone() {
    let square = [1, 4, DIM, DIM];
    let wide = [1, 4, LEN, DIM];
    let report_one = |what: &str, f: &Function| check(f, false, &[1]).map_err(|e| format!("{what}: {e}"));
    let keys_as_they_are = around(
        |b, q, k, v| {
            let s = matmul(b, "scores", q, k, [false, false]);
            let w = softmax(b, s);
            matmul(b, "mixed", w, v, [false, false])
        },
        &square,
        &square,
    );
    let values_transposed = around(
        |b, q, k, v| {
            let s = matmul(b, "scores", q, k, [false, true]);
            let w = softmax(b, s);
            matmul(b, "mixed", w, v, [false, true])
        },
        &square,
        &square,
    );
    let wider_values = around(
        |b, q, k, v| {
            let s = matmul(b, "scores", q, k, [false, true]);
            let w = softmax(b, s);
            matmul(b, "mixed", w, v, [false, false])
        },
        &wide,
        &[1, 4, LEN, 5],
    );
    // The rows of all heads meet the values of every head.
    let regrouped = around(
        |b, q, k, v| {
            let s = matmul(b, "scores", q, k, [false, true]);
            let w = softmax(b, s);
            let w = b.reshape("rows", w, &[1, 1, 12, n(LEN)]);
            matmul(b, "mixed", w, v, [false, false])
        },
        &wide,
        &wide,
    );
    // As many rows a head as before, and other ones.
    let dealt = around(
        |b, q, k, v| {
            let s = matmul(b, "scores", q, k, [false, true]);
            let w = softmax(b, s);
            let w = b.reshape("rows", w, &[3, 4, 1, n(LEN)]);
            matmul(b, "mixed", w, v, [false, false])
        },
        &wide,
        &wide,
    );
    report([
        report_one("keys as they are", &keys_as_they_are),
        report_one("values transposed", &values_transposed),
        report_one("wider values", &wider_values),
        report_one("rows regrouped", &regrouped),
        report_one("rows dealt out", &dealt),
    ]);
}

#[test]
fn one_head_that_a_whole_group_shares_is_spread_by_the_products() {
    let mut results = Vec::new();
    for in_state in [false, true] {
        let mut b = Build::new();
        let (q, mask) = (b.input("q", &[1, 4, 3, DIM]), b.input("mask", &[1, 1, 3, LEN]));
        let state = b.state("cache", &[2, 1, LEN, DIM]);
        let all = b.read("all", state);
        let mut side = |name: &str, row: i32| match in_state {
            true => b.slice(name, all, &[row, 0, 0, 0], &[row + 1, 1, n(LEN), n(DIM)]),
            false => b.input(name, &[1, 1, LEN, DIM]),
        };
        let (k, v) = (side("k", 0), side("v", 1));
        let s = matmul(&mut b, "scores", q, k, [false, true]);
        let s = b.add("masked", s, mask);
        let w = softmax(&mut b, s);
        let out = matmul(&mut b, "mixed", w, v, [false, false]);
        results.push(check(&b.finish(&[out]), true, &[2, 1, LEN, DIM]).map_err(|e| format!("state {in_state}: {e}")));
    }
    report(results);
}

#[test]
fn a_write_between_scores_and_mix_does_not_change_them() {
    let mut b = Build::new();
    let (q, x) = (b.input("q", &[1, 2, 3, DIM]), b.input("x", &[1, 2, 1, DIM]));
    let state = b.state("cache", &[2, 2, LEN, DIM]);
    let all = b.read("all", state);
    let k = b.slice("k", all, &[0, 0, 0, 0], &[1, 2, n(LEN), n(DIM)]);
    let v = b.slice("v", all, &[1, 0, 0, 0], &[2, 2, n(LEN), n(DIM)]);
    let s = matmul(&mut b, "scores", q, k, [false, true]);
    let args =
        [("x", all.into()), ("update", x.into()), ("begin", [0, 0, 4, 0].into()), ("end", [1, 2, 5, n(DIM)].into())];
    let u = b.op("slice_update", "u", &args);
    b.write(state, u);
    let w = softmax(&mut b, s);
    let out = matmul(&mut b, "mixed", w, v, [false, false]);
    report([check(&b.finish(&[out]), true, &[2, 2, LEN, DIM])]);
}
