//! Products around one x, joined and fused in plans: exact plans compute what the interpreter does, others stay near it;
//! the bits do not depend on the number of threads, nor, up to the few rows whose activations are 16 bits deep and beyond
//! them, on how many rows are computed together.

#[path = "common/program.rs"]
mod program;

use std::sync::Arc;

use anemone_cpu::{Instance, Plan, PlanOptions, Pool, State};
use anemone_mil::build::Arg;
use anemone_mil::lower::PackCache;
use anemone_mil::{Const, DType, Function, ValueId};
use program::{Both, Build, halves, named, noise};

const WIDTH: usize = 96;
const INNER: usize = 160;

/// A weight of (rows, columns): integers of four or eight bits, or half floats.
fn weight(b: &mut Build, name: &str, make: DType, rows: usize, columns: usize) -> ValueId {
    let values = noise(rows as u64 + 7, rows * columns);
    if make == DType::F16 {
        return b.0.constant(name, Const::floats(DType::F16, &[rows, columns], &values));
    }
    let top = if make == DType::I4 { 7.0 } else { 127.0 };
    let integers: Vec<i64> = values.iter().map(|v| (v * top) as i64).collect();
    let blocks = if make == DType::I4 { columns / 32 } else { 1 };
    let scales: Vec<f32> = noise(3, rows * blocks).iter().map(|v| (v + 1.5) / top / 4.0).collect();
    let args: [(&str, Arg); 2] = [
        ("data", Const::ints(make, &[rows, columns], &integers).into()),
        ("scale", Const::floats(DType::F16, &[rows, blocks], &scales).into()),
    ];
    b.op("constexpr_blockwise_shift_scale", name, &args)
}

fn linear(b: &mut Build, name: &str, make: DType, x: ValueId, rows: usize, columns: usize, bias: bool) -> ValueId {
    let w = weight(b, &format!("{name}_weight"), make, rows, columns);
    let mut args: Vec<(&str, Arg)> = vec![("x", x.into()), ("weight", w.into())];
    if bias {
        args.push(("bias", Const::floats(DType::F16, &[rows], &noise(5, rows)).into()));
    }
    b.op("linear", name, &args)
}

/// Three projections of x, and a gated layer with its residual, over `n` rows.
fn layer(make: DType, n: usize, bias: bool) -> Function {
    let mut b = Build::new();
    let x = b.input("x", &[1, n, WIDTH]);
    let mut outs: Vec<ValueId> =
        [("q", 96), ("k", 48), ("v", 40)].map(|(name, rows)| linear(&mut b, name, make, x, rows, WIDTH, bias)).into();
    let gate = linear(&mut b, "gate", make, x, INNER, WIDTH, bias);
    let up = linear(&mut b, "up", make, x, INNER, WIDTH, false);
    let silu = b.op("silu", "silu", &[("x", gate.into())]);
    let inner = b.op("mul", "inner", &[("x", silu.into()), ("y", up.into())]);
    let down = linear(&mut b, "down", make, inner, WIDTH, INNER, bias);
    outs.push(b.add("fed", x, down));
    b.finish(&outs)
}

#[test]
fn exact_plans_compute_what_the_interpreter_does_and_others_stay_near_it() {
    for make in [DType::F16, DType::I8, DType::I4] {
        for n in [1, 3, 70] {
            for bias in [false, true] {
                let f = layer(make, n, bias);
                let x = named([("x", halves(1, &[1, n, WIDTH]))]);
                // One element may be off by what the largest of its inputs' blocks allows; all together are nearer.
                let (each, all) = match (make, n) {
                    (DType::F16, _) => (1e-5, 1e-5),
                    // Activations of 16 bits, and of 8.
                    (_, ..=16) => (5e-4, 1e-4),
                    _ => (0.5, 2e-2),
                };
                let (exact, fast) = (run(&f, true, 1, &noise(1, n * WIDTH)), run(&f, false, 1, &noise(1, n * WIDTH)));
                for (exact, fast) in exact.iter().zip(&fast) {
                    let size = |v: &[f32]| v.iter().map(|x| x * x).sum::<f32>().sqrt();
                    let off: Vec<f32> = exact.iter().zip(fast).map(|(a, b)| a - b).collect();
                    let (off, size) = (size(&off), size(exact));
                    // Results are half floats, whose own rounding is 2^-11 at most.
                    assert!(off <= (all + 5e-4) * size, "{make} {n}: off by {off} of {size}");
                }
                for (exact, tolerance) in [(true, 1e-5), (false, each)] {
                    let mut both = Both::with(&f, exact).unwrap();
                    let plan = both.plan().to_string();
                    for part in
                        ["joined into `projections`", "fused into `gated_projection`", "fused into `projection`"]
                    {
                        assert!(plan.contains(part), "{part} is not in:\n{plan}");
                    }
                    assert!(!plan.contains("`linear` giving `q` "), "q is by itself in:\n{plan}");
                    both.run(&x, tolerance).unwrap_or_else(|e| panic!("{make} {n} exact {exact}: {e}")).unwrap();
                }
            }
        }
    }
}

/// What a plan gives for the rows of `x`.
fn run(f: &Function, exact: bool, threads: usize, x: &[f32]) -> Vec<Vec<f32>> {
    let options = PlanOptions { exact, ..PlanOptions::default() };
    let plan = Arc::new(Plan::new(f, &options, &PackCache::default()).unwrap());
    let mut instance = Instance::new(Arc::clone(&plan), Pool::new(threads));
    let mut state = State::new(Arc::clone(plan.states()));
    let x = anemone_mil::Tensor::floats(DType::F16, &[1, x.len() / WIDTH, WIDTH], x);
    let outs = program::run(&mut instance, &mut state, &named([("x", x)])).unwrap();
    ["q", "k", "v", "fed"].map(|n| outs[n].as_f32().unwrap().to_vec()).into()
}

#[test]
fn the_bits_depend_neither_on_threads_nor_on_the_rows_beside() {
    for make in [DType::I8, DType::I4] {
        let (n, x) = (70, noise(11, 70 * WIDTH));
        let all = run(&layer(make, n, true), false, 1, &x);
        for threads in [2, 3, 5] {
            assert!(run(&layer(make, n, true), false, threads, &x) == all, "{make}: {threads} threads give other bits");
        }
        let few = run(&layer(make, 16, true), false, 2, &x[..16 * WIDTH]);
        for (all, first, n) in [(&all, 3, 17), (&all, 40, 30), (&few, 0, 1), (&few, 9, 1), (&few, 11, 5)] {
            let part = run(&layer(make, n, true), false, 2, &x[first * WIDTH..][..n * WIDTH]);
            for (part, all) in part.iter().zip(all) {
                let at = first * (part.len() / n);
                assert!(part[..] == all[at..][..part.len()], "{make}: {n} rows from {first} on have other bits");
            }
        }
    }
}

/// What others use of a projection is not computed twice.
#[test]
fn products_with_other_users_are_left_alone() {
    let mut b = Build::new();
    let x = b.input("x", &[1, 2, WIDTH]);
    let product = linear(&mut b, "product", DType::I8, x, WIDTH, WIDTH, false);
    let sum = b.add("sum", product, x);
    let again = b.op("mul", "again", &[("x", sum.into()), ("y", product.into())]);
    let f = b.finish(&[again]);
    let mut both = Both::new(&f).unwrap();
    assert!(!both.plan().to_string().contains("fused into `projection`"), "{}", both.plan());
    both.run(&named([("x", halves(1, &[1, 2, WIDTH]))]), 1e-5).unwrap().unwrap();
}
