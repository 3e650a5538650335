//! The promise that a run allocates nothing, counted.
#![allow(unsafe_code, reason = "a global allocator that counts")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anemone_cpu::{Instance, Plan, PlanOptions, Pool, State, Varying};
use anemone_mil::lower::PackCache;
use common::{Fixture, Planned, inputs_of};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: as above; `p` came from the system's allocator.
        unsafe { System.dealloc(p, layout) }
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above; `p` came from the system's allocator.
        unsafe { System.realloc(p, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What `runs` allocates, at the least of some times: a thread makes something of its own when it first has work, which on a
/// busy machine may be late.
fn least(mut runs: impl FnMut()) -> usize {
    let counted = (0..5).map(|_| {
        let before = ALLOCATIONS.load(Ordering::SeqCst);
        runs();
        ALLOCATIONS.load(Ordering::SeqCst) - before
    });
    counted.min().unwrap_or(0)
}

/// Allocations of 50 runs after one to warm up, at the positions that there is room for.
fn allocations(name: &str, function: &str, threads: usize, varying: bool) -> usize {
    let fixture = Fixture::open(name);
    let function = if function.is_empty() { fixture.model.default_name() } else { function };
    let f = &fixture.model.program.functions[function];
    let width = if function == "prefill" { 8 } else { 1 };
    let inputs = inputs_of(f, &vec![1; width], 3);
    let range = varying.then_some(("causalMask", 64));
    let planned = Planned::new(&fixture.model, threads, range);
    let mut instance = planned.instance(function, &inputs);
    let mut state = State::new(instance.plan().states().clone());
    let mut step = |extent: usize| {
        if varying {
            instance.set_extent(extent).unwrap();
        }
        instance.run(&mut state).unwrap();
    };
    step(width + 3);
    least(|| (0..50).for_each(|i| step(width + 3 + i)))
}

/// The same where the number of tokens varies too, from run to run.
fn allocations_of_any_number(name: &str) -> usize {
    let fixture = Fixture::open(name);
    let function = &fixture.model.program.functions[fixture.model.default_name()];
    let varying = |name: &str, axis, low, high| Varying { axes: vec![(name.to_owned(), axis)], low, high };
    let mut tokens = varying("inputIds", 1, 2, 16);
    tokens.axes.push(("causalMask".to_owned(), 2));
    let shapes = [("inputIds", vec![1, 16]), ("causalMask", vec![1, 1, 16, 64])];
    let options = PlanOptions {
        shapes: shapes.map(|(name, shape)| (name.to_owned(), shape)).into(),
        varying: Some(varying("causalMask", 3, 2, 64)),
        tokens: Some(tokens),
        ..PlanOptions::default()
    };
    let plan = Plan::new(function, &options, &PackCache::default()).unwrap();
    let mut instance = Instance::new(Arc::new(plan), Pool::new(2));
    let mut state = State::new(instance.plan().states().clone());
    let mut step = |extent: usize, tokens: usize| {
        instance.set_extents(extent, tokens).unwrap();
        instance.run(&mut state).unwrap();
    };
    let found = least(|| (0..50).for_each(|i| step(16 + i % 48, 2 + i % 15)));
    for (extent, tokens) in [(16, 17), (65, 4), (3, 4), (16, 1)] {
        assert!(instance.set_extents(extent, tokens).is_err(), "{tokens} tokens of {extent}");
    }
    found
}

// One test, so that no other allocates meanwhile.
#[test]
fn a_run_allocates_nothing() {
    let mut wrong = Vec::new();
    for (name, function, varying) in [
        ("tiny_guide_kv1_fp16", "", false),
        ("tiny_guide_kv2_fp16", "", false),
        ("tiny_article_fp16", "", true),
        ("tiny_article_decomposed_fp16", "", true),
        ("multifunction", "decode", true),
        ("multifunction", "prefill", true),
        ("zoo_lin_int4_block32", "", true),
        ("zoo_pal4_group8", "", true),
        ("zoo_lin_int8_channel", "", true),
    ] {
        for threads in [1, 2] {
            let n = allocations(name, function, threads, varying);
            if n > 0 {
                wrong.push(format!("{name} {function}, {threads} threads: {n} allocations in 50 runs"));
            }
        }
    }
    for name in ["tiny_article_fp16", "tiny_article_decomposed_fp16"] {
        let n = allocations_of_any_number(name);
        if n > 0 {
            wrong.push(format!("{name}, any number of tokens: {n} allocations in 50 runs"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
