//! The same bits for any number of threads, run after run; states of one conversation belong to it and to its package.

mod common;
#[path = "common/program.rs"]
mod program;

use std::sync::Arc;

use anemone_cpu::{Instance, Note, Plan, PlanOptions, Pool, State};
use anemone_mil::lower::PackCache;
use common::{Fixture, Planned, drive};
use program::{Build, halves, named};

/// One plan for each width, whatever the position.
fn planned(fixture: &Fixture, threads: usize) -> Planned<'_> {
    let masked = !fixture.name.contains("guide");
    Planned::new(&fixture.model, threads, masked.then_some(("causalMask", 64)))
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for name in ["tiny_article_fp16", "tiny_guide_kv1_fp16", "multifunction", "zoo_pal4_group8", "zoo_lin_int4_block32"]
    {
        let fixture = Fixture::open(name);
        let runs = [1, 2, 3, 5].map(|threads| drive(&fixture, &mut planned(&fixture, threads), &fixture.splits()));
        for run in &runs[1..] {
            assert!(run.iter().map(|v| v.to_bits()).eq(runs[0].iter().map(|v| v.to_bits())), "{name}");
        }
    }
}

/// A large product and softmax: work that is split among threads, of many rows or one.
#[test]
fn large_products_give_the_same_bits_for_any_number_of_threads() {
    [1, 5].into_iter().for_each(large_products);
}

fn large_products(rows: usize) {
    let mut b = Build::new();
    let (x, w) = (b.input("x", &[rows, 300]), program::noise(3, 300 * 1000));
    let weight = b.0.constant("w", anemone_mil::Const::floats(anemone_mil::DType::F16, &[1000, 300], &w));
    let y = b.op("linear", "y", &[("x", x.into()), ("weight", weight.into())]);
    let y = b.op("softmax", "weights", &[("x", y.into()), ("axis", (-1).into())]);
    let f = b.finish(&[y]);
    let plan = Arc::new(Plan::new(&f, &PlanOptions::default(), &PackCache::default()).unwrap());
    let inputs = named([("x", halves(1, &[rows, 300]))]);
    let runs = [1, 2, 3, 5].map(|threads| {
        let mut instance = Instance::new(Arc::clone(&plan), Pool::new(threads));
        let mut state = State::new(Arc::clone(plan.states()));
        let first = program::run(&mut instance, &mut state, &inputs).unwrap();
        assert_eq!(first, program::run(&mut instance, &mut state, &inputs).unwrap(), "run twice by {threads}");
        first
    });
    assert!(runs[1..].iter().all(|run| *run == runs[0]));
}

#[test]
fn the_states_of_known_packages_are_never_copied() {
    let all = [
        "tiny_article_fp16",
        "tiny_article_fp32",
        "tiny_article_decomposed_fp16",
        "tiny_guide_kv1_fp16",
        "tiny_guide_kv2_fp32",
        "multifunction",
    ];
    for name in all {
        let fixture = Fixture::open(name);
        let mut run = planned(&fixture, 1);
        drive(&fixture, &mut run, &fixture.splits());
        for plan in run.plans() {
            let copied: Vec<&Note> = plan.notes().iter().filter(|n| matches!(n, Note::StateCopied { .. })).collect();
            assert!(copied.is_empty(), "{name}: {copied:?}\n{plan}");
        }
    }
}

/// Adds `x` to the total in state `name`.
fn total(name: &str, shape: &[usize], owner: [u8; 32]) -> (Instance, State) {
    let mut b = Build::new();
    let (x, s) = (b.input("x", shape), b.state(name, shape));
    let old = b.read("old", s);
    let new = b.add("new", old, x);
    b.write(s, new);
    let f = b.finish(&[new]);
    let options = PlanOptions { owner, ..PlanOptions::default() };
    let plan = Arc::new(Plan::new(&f, &options, &PackCache::default()).unwrap());
    let state = State::new(Arc::clone(plan.states()));
    (Instance::new(plan, Pool::new(1)), state)
}

#[test]
fn a_fork_goes_its_own_way() {
    let (mut run, mut a) = total("s", &[2], [0; 32]);
    let one = named([("x", halves(1, &[2]))]);
    program::run(&mut run, &mut a, &one).unwrap();
    let before = a.get("s").unwrap().to_vec();
    let mut b = a.fork();
    assert_eq!(b.get("s").unwrap(), before);
    let ahead = program::run(&mut run, &mut b, &one).unwrap();
    assert_eq!(a.get("s").unwrap(), before, "the fork wrote into what it came from");
    assert_ne!(b.get("s").unwrap(), before);
    assert_eq!(program::run(&mut run, &mut a, &one).unwrap(), ahead, "both continue from the same point");
}

#[test]
fn states_of_others_are_refused() {
    let (mut run, own) = total("s", &[2], [1; 32]);
    let (_, mut foreign) = total("s", &[2], [2; 32]);
    let e = run.run(&mut foreign).unwrap_err().to_string();
    assert_eq!(e, "the state belongs to another package (digest 020202020202, expected 010101010101); make a new one");
    let (_, mut longer) = total("s", &[3], [1; 32]);
    let e = run.run(&mut longer).unwrap_err().to_string();
    assert_eq!(e, "the state holds s [3], expected s [2]; make a new one");
    let (_, mut other) = total("r", &[2], [1; 32]);
    let e = run.run(&mut other).unwrap_err().to_string();
    assert_eq!(e, "the state holds r [2], expected s [2]; make a new one");
    // The same states of the same package, by another plan: they are the package's, not the plan's.
    let (_, mut sibling) = total("s", &[2], [1; 32]);
    run.run(&mut sibling).unwrap();
    drop(own);
}
