//! After their first tokens, sampler, detokenizer and package allocate nothing; a session allocates its state.
#![allow(unsafe_code, reason = "counting what is allocated takes an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use anemone::{
    Detokenizer, Generation, Model, ModelOptions, PackageRunner, Request, Runner, Sampler, Session, Tokenizer,
};

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATED.try_with(|count| count.set(count.get() + 1));
        let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + layout.size()));
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above, which is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATED.get();
    work();
    ALLOCATED.get() - before
}

#[test]
fn the_count_counts() {
    assert_eq!(allocations(|| drop(vec![1u8, 2])), 1);
}

#[test]
fn sampling_allocates_nothing_after_the_first_token() {
    let logits: Vec<f32> = (0..5000).map(|id| ((id * 7919) % 997) as f32 / 100.0).collect();
    let plain = Generation { seed: Some(3), ..Generation::default() };
    for settings in [
        plain.clone(),
        Generation { temperature: 0.8, ..plain.clone() },
        Generation { temperature: 0.8, top_k: 40, top_p: 0.9, min_p: 0.05, repetition_penalty: 1.1, ..plain.clone() },
        Generation { temperature: 5.0, top_p: 0.99, ..plain },
    ] {
        let mut sampler = Sampler::new(&settings, logits.len()).unwrap();
        sampler.sample(&logits).unwrap();
        let count = allocations(|| {
            for _ in 0..50 {
                sampler.sample(&logits).unwrap();
            }
        });
        assert_eq!(count, 0, "{settings:?}");
    }
}

#[test]
fn detokenizing_allocates_nothing_after_the_first_token() {
    let vocabulary: Vec<String> = ('a'..='z').enumerate().map(|(id, letter)| format!("\"{letter}\":{id}")).collect();
    let json = format!(
        r#"{{"version":"1.0","added_tokens":[],"decoder":{{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}},
        "model":{{"type":"BPE","vocab":{{{}}},"merges":[]}}}}"#,
        vocabulary.join(",")
    );
    let tokenizer = Tokenizer::from_bytes(json.as_bytes()).unwrap();
    let mut detokenizer = Detokenizer::new(&tokenizer, &["abcdz".to_owned(), "xyz!".to_owned()]).unwrap();
    detokenizer.push(0).unwrap();
    let count = allocations(|| {
        for token in 1..1000 {
            detokenizer.push(token % 26).unwrap();
        }
    });
    assert_eq!(count, 0);
    assert_eq!(detokenizer.stopped(), None);
}

#[test]
fn feeding_a_package_allocates_nothing() {
    let folder = std::env::var_os("ANEMONE_FIXTURES").map_or_else(
        || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures"),
        std::path::PathBuf::from,
    );
    // Allocations are counted on this thread, so there must be no other.
    let options = ModelOptions { threads: Some(1), ..ModelOptions::default() };
    for name in ["tiny_article_fp16", "tiny_guide_kv1_fp16"] {
        let path = folder.join(name).join("model.mlpackage");
        let runner = PackageRunner::open(&path, &options)
            .unwrap_or_else(|e| panic!("the fixtures are needed beside the checkout: {e}"));
        let (mut state, mut logits) = (runner.new_state().unwrap(), vec![0.0; runner.vocabulary()]);
        runner.feed(&mut state, 0, &[1], &mut logits).unwrap();
        let count = allocations(|| {
            runner.feed(&mut state, 1, &[2; 9], &mut logits).unwrap();
            for position in 10..14 {
                runner.feed(&mut state, position, &[3], &mut logits).unwrap();
            }
        });
        assert_eq!(count, 0, "{name}");
    }
}

#[test]
fn a_session_costs_its_state_and_no_weights() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny/model");
    let options = ModelOptions { threads: Some(1), ..ModelOptions::default() };
    let model = std::sync::Arc::new(Model::open(&folder, &options).unwrap());
    let state = model.info().state_bytes as usize;
    // Logits, tokens and the like; much less than the weights.
    let besides = 16 << 10;
    assert!(model.info().weight_bytes as usize > 4 * besides, "{:?}", model.info());
    let begun = |session: &mut Session| {
        let request = Request::new(Generation { max_tokens: Some(4), ..Generation::default() });
        session.say("why?", &request, &mut |_| {}).unwrap();
    };
    // The first prediction of a model makes what all of them share.
    begun(&mut Session::new(std::sync::Arc::clone(&model)).unwrap());
    let mut sessions = Vec::new();
    for _ in 0..10 {
        let before = BYTES.get();
        sessions.push(Session::new(std::sync::Arc::clone(&model)).unwrap());
        let made = BYTES.get() - before;
        assert!((state..state + besides).contains(&made), "{made} bytes for a state of {state}");
        begun(sessions.last_mut().unwrap());
    }
}
