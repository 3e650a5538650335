//! Every type against vectors that the `gguf` Python package decoded (`tests/data/dequantize/README.md`).

use proptest::prelude::*;

use super::*;

/// Stored bytes and the values that they mean.
fn golden(kind: &Kind) -> (Vec<u8>, Vec<f32>) {
    let path = format!("{}/tests/data/dequantize/{}.bin", env!("CARGO_MANIFEST_DIR"), kind.name);
    let file = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let (length, rest) = file.split_at(4);
    let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
    let (stored, values) = rest.split_at(length);
    (stored.to_vec(), values.as_chunks::<4>().0.iter().map(|v| f32::from_le_bytes(*v)).collect())
}

#[test]
fn every_type_decodes_to_the_same_bits_as_the_reference() {
    for kind in KINDS {
        let (stored, expected) = golden(kind);
        assert_eq!(kind.bytes_for(expected.len()), Some(stored.len()), "{kind}");
        let mut out = vec![f32::NAN; expected.len()];
        kind.decode(&stored, 0..expected.len(), &mut out);
        for (i, (found, expected)) in out.iter().zip(&expected).enumerate() {
            assert_eq!(found.to_bits(), expected.to_bits(), "{kind} element {i}: {found} against {expected}");
        }
    }
}

#[test]
fn any_range_is_the_same_as_a_part_of_the_whole() {
    for kind in KINDS {
        let (stored, expected) = golden(kind);
        let n = expected.len();
        for (start, end) in [(0, 0), (0, 1), (1, n), (n - 1, n), (n / 3, 2 * n / 3), (n, n), (31.min(n), 33.min(n))] {
            let mut out = vec![f32::NAN; end - start];
            kind.decode(&stored, start..end, &mut out);
            assert_eq!(out, expected[start..end], "{kind} {start}..{end}");
        }
    }
}

#[test]
fn the_list_has_no_double_names_or_codes() {
    for (i, kind) in KINDS.iter().enumerate() {
        assert!(KINDS[..i].iter().all(|other| other.code != kind.code && other.name != kind.name), "{kind}");
        assert!(kind.block_len <= LARGEST_BLOCK);
        assert!(UNDECODED.iter().all(|(code, _)| *code != kind.code), "{kind}");
    }
}

#[test]
fn names_of_types_that_cannot_be_decoded() {
    assert_eq!(name_of(23), "IQ4_XS");
    assert_eq!(name_of(12), "Q4_K");
    assert_eq!(name_of(9999), "number 9999");
}

#[test]
fn bytes_for_refuses_parts_of_blocks_and_overflow() {
    let q4_k = Kind::from_code(12).unwrap();
    assert_eq!(q4_k.bytes_for(512), Some(288));
    assert_eq!(q4_k.bytes_for(100), None);
    assert_eq!(q4_k.bytes_for(usize::MAX & !255), usize::checked_mul(usize::MAX / 256, 144));
    assert_eq!(F32.bytes_for(usize::MAX), None);
}

proptest! {
    #[test]
    fn random_bits_decode_without_panic(bits in proptest::collection::vec(any::<u8>(), 210)) {
        for kind in KINDS {
            let mut out = vec![0.0; kind.block_len];
            kind.decode(&bits, 0..kind.block_len, &mut out);
        }
    }
}
