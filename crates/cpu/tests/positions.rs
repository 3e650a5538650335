//! Rotary positions and masks of positions as tools spell them, fused in plans: the same as the interpreter computes. What
//! only looks like them stays what it is.

#[path = "common/program.rs"]
mod program;

use anemone_mil::build::Arg;
use anemone_mil::{Const, DType, Function, Tensor, ValueId};
use program::{Both, Build, halves, named};
use smallvec::SmallVec;

const HEADS: usize = 3;
const TOKENS: usize = 4;
const SIZE: usize = 12;

fn n(n: usize) -> i32 {
    i32::try_from(n).unwrap()
}

fn both(b: &mut Build, kind: &str, name: &str, x: ValueId, y: ValueId) -> ValueId {
    b.op(kind, name, &[("x", x.into()), ("y", y.into())])
}

fn concat(b: &mut Build, name: &str, values: &[ValueId]) -> ValueId {
    let values: SmallVec<[ValueId; 1]> = values.into();
    b.op("concat", name, &[("values", Arg::Values(values)), ("axis", (-1).into()), ("interleave", false.into())])
}

/// x as projections give it: heads in front of tokens, a view.
fn heads(b: &mut Build) -> ValueId {
    let x = b.input("x", &[1, TOKENS, HEADS * SIZE]);
    let x = b.reshape("heads", x, &[1, n(TOKENS), n(HEADS), n(SIZE)]);
    b.transpose("by_head", x, &[0, 2, 1, 3])
}

/// The halves split, turned and joined; `rest` elements of each row stay. `minus` takes the place of the subtraction.
fn by_parts(rest: usize, minus: &str) -> Function {
    let half = (SIZE - rest) / 2;
    let mut b = Build::new();
    let x = heads(&mut b);
    let (cos, sin) = (b.input("cos", &[TOKENS, half]), b.input("sin", &[TOKENS, half]));
    let mut sizes = vec![n(half), n(half)];
    sizes.extend((rest > 0).then_some(n(rest)));
    let args: [(&str, Arg); 3] = [("x", x.into()), ("split_sizes", sizes.as_slice().into()), ("axis", (-1).into())];
    let parts = b.0.ops("split", "parts", &args).unwrap();
    let (ac, bs) = (both(&mut b, "mul", "ac", parts[0], cos), both(&mut b, "mul", "bs", parts[1], sin));
    let first = both(&mut b, minus, "first", ac, bs);
    let (bc, a_s) = (both(&mut b, "mul", "bc", cos, parts[1]), both(&mut b, "mul", "as", parts[0], sin));
    let second = both(&mut b, "add", "second", a_s, bc);
    let out = concat(&mut b, "out", &[&[first, second], &parts[2..]].concat());
    b.finish(&[out])
}

/// x · cos + (−high, low) · sin; the high half begins at `begin`.
fn by_rotation(begin: usize, factor: f32) -> Function {
    let mut b = Build::new();
    let x = heads(&mut b);
    let (cos, sin) = (b.input("cos", &[1, TOKENS, SIZE]), b.input("sin", &[1, TOKENS, SIZE]));
    let slice = |b: &mut Build, name: &str, from: usize| {
        b.slice(name, x, &[0, 0, 0, n(from)], &[1, n(HEADS), n(TOKENS), n(from + SIZE / 2)])
    };
    let (low, high) = (slice(&mut b, "low", 0), slice(&mut b, "high", begin));
    let minus = b.op("mul", "minus", &[("x", high.into()), ("y", half::f16::from_f32(factor).into())]);
    let turned = concat(&mut b, "turned", &[minus, low]);
    let (a, c) = (both(&mut b, "mul", "whole_cos", x, cos), both(&mut b, "mul", "turned_sin", turned, sin));
    let out = b.add("out", a, c);
    b.finish(&[out])
}

fn check(f: &Function, fused: bool) {
    let mut both = Both::new(f).unwrap();
    let plan = both.plan().to_string();
    assert_eq!(plan.contains("fused into `rope`"), fused, "{plan}");
    assert!(!fused || plan.lines().count() == 1, "more is left than the rope:\n{plan}");
    let inputs = f.inputs.iter().map(|&id| {
        let v = f.value(id);
        (v.name.clone(), halves(u64::from(id.0), &v.ty.tensor().unwrap().to_static().unwrap().shape))
    });
    both.run(&inputs.collect(), 1e-6).unwrap().unwrap();
}

#[test]
fn both_spellings_of_rope_are_fused() {
    check(&by_parts(0, "sub"), true);
    check(&by_parts(4, "sub"), true);
    check(&by_rotation(SIZE / 2, -1.0), true);
}

#[test]
fn what_only_looks_like_rope_is_left_alone() {
    check(&by_parts(0, "add"), false);
    check(&by_rotation(SIZE / 2, 1.0), false);
    check(&by_rotation(SIZE / 2 - 1, -1.0), false);
}

const LEN: usize = 20;
const DIM: usize = 8;

/// Attention behind a mask of the positions of `tokens`, written as a product or as a choice; `hidden` is what it hides by.
fn masked(tokens: usize, choice: bool, hidden: f32, first: i64) -> Function {
    let mut b = Build::new();
    let q = b.input("q", &[1, 4, tokens, DIM]);
    let (k, v) = (b.input("k", &[1, 2, LEN, DIM]), b.input("v", &[1, 2, LEN, DIM]));
    let positions = b.ints("positions", &[tokens]);
    let all: Vec<i64> = (first..).take(LEN).collect();
    let all = b.0.constant("all", Const::ints(DType::I32, &[LEN], &all));
    let hidden = half::f16::from_f32(hidden);
    let mask = if choice {
        let seen = both(&mut b, "less_equal", "seen", all, positions);
        b.op("select", "mask", &[("cond", seen.into()), ("a", half::f16::ZERO.into()), ("b", hidden.into())])
    } else {
        let column = b.op("expand_dims", "column", &[("x", positions.into()), ("axes", [1].into())]);
        let seen = both(&mut b, "less_equal", "seen", all, column);
        let unseen = b.op("logical_not", "unseen", &[("x", seen.into())]);
        let unseen = b.op("cast", "unseen_half", &[("x", unseen.into()), ("dtype", "fp16".into())]);
        b.op("mul", "mask", &[("x", unseen.into()), ("y", hidden.into())])
    };
    let q = b.op("mul", "q_scaled", &[("x", q.into()), ("y", half::f16::from_f32(0.5).into())]);
    let q = b.reshape("q_groups", q, &[1, 2, 2 * n(tokens), n(DIM)]);
    let scores = b.op("matmul", "scores", &[("x", q.into()), ("y", k.into()), ("transpose_y", true.into())]);
    let scores = b.reshape("by_head", scores, &[2, 2, n(tokens), n(LEN)]);
    let scores = b.add("masked", scores, mask);
    let weights = b.op("softmax", "weights", &[("x", scores.into()), ("axis", (-1).into())]);
    let weights = b.reshape("by_group", weights, &[1, 2, 2 * n(tokens), n(LEN)]);
    let mixed = b.op("matmul", "mixed", &[("x", weights.into()), ("y", v.into())]);
    b.finish(&[mixed])
}

#[test]
fn masks_of_positions_give_way_to_the_positions() {
    let plain = [(1, false, -1e4, 0), (3, false, -6e4, 0), (1, true, -1e4, 0)];
    let others = [(3, false, -1.0, 0), (3, false, -1e4, 1), (1, true, -2.0, 0)];
    for (all, gone) in [(plain, true), (others, false)] {
        for (tokens, choice, hidden, first) in all {
            let f = masked(tokens, choice, hidden, first);
            let mut both = Both::new(&f).unwrap();
            let plan = both.plan().to_string();
            assert!(plan.contains("fused into `attention`"), "{plan}");
            assert_eq!(!plan.contains("less_equal"), gone, "{hidden} {first}:\n{plan}");
            for start in [0, 5, 16] {
                let positions: Vec<i32> = (start..).take(tokens).collect();
                let inputs = named([
                    ("q", halves(1, &[1, 4, tokens, DIM])),
                    ("k", halves(2, &[1, 2, LEN, DIM])),
                    ("v", halves(3, &[1, 2, LEN, DIM])),
                    ("positions", Tensor::ints(DType::I32, &[tokens], &positions)),
                ]);
                both.run(&inputs, 1e-5).unwrap().unwrap();
            }
        }
    }
}
