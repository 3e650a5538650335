//! The promise that a run allocates nothing, counted.
#![allow(unsafe_code, reason = "a global allocator that counts")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use anemone_cpu::State;
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
    let before = ALLOCATIONS.load(Ordering::SeqCst);
    (0..50).for_each(|i| step(width + 3 + i));
    ALLOCATIONS.load(Ordering::SeqCst) - before
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
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
