//! Decoding a model stays within the memory that was estimated before, and refuses what would not.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use anemone_package::limits::MAX_DECODED_BYTES;
use anemone_package::proto::spec::Model;
use anemone_package::proto::{ModelError, decode_model};
use bytes::Bytes;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code, reason = "a test counts what is allocated")]
// SAFETY: every call goes to the system's allocator with the arguments as they came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(NOW.fetch_add(layout.size(), SeqCst) + layout.size(), SeqCst);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), SeqCst);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `work` returns and the most memory that was taken while it ran.
fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(SeqCst);
    PEAK.store(before, SeqCst);
    let result = work();
    (result, PEAK.load(SeqCst) - before)
}

fn delimited(number: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(number, WireType::LengthDelimited, &mut bytes);
    encode_varint(payload.len() as u64, &mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

/// A model of version 9 whose program has one function with one block, with `block` for its bytes.
fn model_with_block(block: &[u8]) -> Bytes {
    let function = delimited(3, &delimited(2, block));
    let program = delimited(2, &delimited(2, &function));
    let mut bytes = vec![8, 9];
    bytes.extend(delimited(502, &program));
    bytes.into()
}

/// One test, for the count is of the whole process.
#[test]
fn memory_stays_within_the_estimate() {
    for (name, path) in common::packages() {
        let bytes = Bytes::from(common::model_bytes(&path));
        let (decoded, peak) = peak(|| decode_model(&bytes).expect("a model"));
        assert!(
            peak as u64 <= decoded.decoded_bytes,
            "{name}: {peak} bytes taken, {} estimated",
            decoded.decoded_bytes
        );
    }

    // Shapes of bytes that take much memory for their length.
    let value = |bytes: &[u8]| delimited(3, &delimited(1, bytes));
    let attribute = |value: &[u8]| delimited(3, &delimited(5, &delimited(2, value)));
    let hostile = [
        ("operations", delimited(3, b"").repeat(20_000)),
        ("operations with an attribute", delimited(3, &delimited(5, b"")).repeat(20_000)),
        ("operations with an input", delimited(3, &delimited(2, b"")).repeat(20_000)),
        ("one operation with many inputs", {
            let inputs: Vec<u8> =
                (0..20_000).flat_map(|i| delimited(2, &delimited(1, format!("{i}").as_bytes()))).collect();
            delimited(3, &inputs)
        }),
        ("names of outputs", delimited(2, b"").repeat(50_000)),
        ("packed integers", attribute(&value(&delimited(2, &delimited(1, &vec![1; 100_000]))))),
        ("unpacked integers", attribute(&value(&delimited(5, &[8, 1].repeat(50_000))))),
        ("strings", attribute(&value(&delimited(4, &delimited(1, b"").repeat(50_000))))),
        ("floats", attribute(&value(&delimited(1, &delimited(1, &vec![0; 100_000]))))),
        (
            "nested lists",
            attribute(&(0..15).fold(vec![], |inner, _| delimited(3, &delimited(3, &delimited(1, &inner))))),
        ),
        (
            "types in boxes",
            attribute(&(0..15).fold(vec![], |inner, _| delimited(2, &delimited(5, &delimited(1, &inner))))),
        ),
    ];
    for (name, block) in hostile {
        let bytes = model_with_block(&block);
        let (decoded, peak) = peak(|| decode_model(&bytes).map(|decoded| decoded.decoded_bytes));
        let estimate = decoded.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(peak as u64 <= estimate, "{name}: {peak} bytes taken, {estimate} estimated");
    }

    let bytes = model_with_block(&delimited(3, &delimited(5, b"")).repeat(1_000_000));
    let (refused, peak) = peak(|| decode_model(&bytes).map(|decoded| decoded.decoded_bytes));
    assert_eq!(refused, Err(ModelError::Expands { limit: MAX_DECODED_BYTES }));
    assert!(peak < 10_000, "{peak} bytes taken to refuse");

    // Deeper than the bound.
    let mut deep = Vec::new();
    for _ in 0..100 {
        deep = delimited(3, &delimited(4, &deep));
    }
    assert!(matches!(decode_model(&model_with_block(&deep)), Err(ModelError::TooDeep { .. })));
    assert!(Model::decode(model_with_block(&deep)).is_err(), "prost has the same bound");
}
