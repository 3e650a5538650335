//! The GGUF reader on files that are right, and on files that are wrong in one way each.

use crate::support::{ARRAY, F32, GgufBuilder, STRING, TinyLlama};
use anemone_convert::ConvertError;
use anemone_convert::source::gguf::{Gguf, Value};
use bytes::Bytes;

fn problem(result: Result<Gguf, ConvertError>) -> String {
    result.expect_err("the file is wrong").to_string()
}

#[track_caller]
fn refused(bytes: impl Into<Bytes>, expected: &str) {
    let found = problem(Gguf::parse(bytes.into()));
    assert!(found.contains(expected), "{found:?} does not say {expected:?}");
}

#[test]
fn every_type_of_value_in_every_version() {
    for version in 1..=3 {
        let file = GgufBuilder::new(version)
            .raw("u8", 0, &[200])
            .raw("i8", 1, &[200])
            .raw("u16", 2, &60000u16.to_le_bytes())
            .raw("i16", 3, &(-3i16).to_le_bytes())
            .u32("u32", 4_000_000_000)
            .raw("i32", 5, &(-4i32).to_le_bytes())
            .f32("f32", 0.25)
            .bool("bool", true)
            .str("string", "naïve")
            .raw("u64", 10, &u64::MAX.to_le_bytes())
            .raw("i64", 11, &i64::MIN.to_le_bytes())
            .raw("f64", 12, &0.1f64.to_le_bytes())
            .strings("strings", &["a", "", "ccc"])
            .i32s("i32s", &[1, -2, 3])
            .build();
        let file = Gguf::parse(file).unwrap();
        let get = |key: &str| file.metadata().get(key).unwrap().clone();
        assert_eq!(file.version(), version);
        assert_eq!(get("u8"), Value::U8(200));
        assert_eq!(get("i8"), Value::I8(-56));
        assert_eq!(get("u16"), Value::U16(60000));
        assert_eq!(get("i16"), Value::I16(-3));
        assert_eq!(get("u32"), Value::U32(4_000_000_000));
        assert_eq!(get("i32"), Value::I32(-4));
        assert_eq!(get("f32"), Value::F32(0.25));
        assert_eq!(get("bool"), Value::Bool(true));
        assert_eq!(get("string").as_str(), Some("naïve"));
        assert_eq!(get("u64"), Value::U64(u64::MAX));
        assert_eq!(get("i64"), Value::I64(i64::MIN));
        assert_eq!(get("f64"), Value::F64(0.1));
        let strings: Vec<Bytes> = get("strings").as_array().unwrap().texts().collect();
        assert_eq!(strings, ["a", "", "ccc"]);
        let numbers: Vec<Value> = get("i32s").as_array().unwrap().iter().collect();
        assert_eq!(numbers, [Value::I32(1), Value::I32(-2), Value::I32(3)]);
        assert_eq!(file.metadata().iter().count(), 14);
    }
}

#[test]
fn arrays_in_arrays_to_a_depth() {
    // [[7, 8], []] of u8
    let mut inner = Vec::new();
    for elements in [&[7u8, 8][..], &[]] {
        inner.extend(0u32.to_le_bytes());
        inner.extend((elements.len() as u64).to_le_bytes());
        inner.extend(elements);
    }
    let file = Gguf::parse(GgufBuilder::new(3).array("nested", ARRAY, 2, &inner).build()).unwrap();
    let nested: Vec<Value> = file.metadata().get("nested").unwrap().as_array().unwrap().iter().collect();
    let first: Vec<Value> = nested[0].as_array().unwrap().iter().collect();
    assert_eq!((nested.len(), first), (2, vec![Value::U8(7), Value::U8(8)]));
    assert!(nested[1].as_array().unwrap().is_empty());

    let mut deep = Vec::new();
    for _ in 0..10_000 {
        deep.extend(ARRAY.to_le_bytes());
        deep.extend(1u64.to_le_bytes());
    }
    refused(GgufBuilder::new(3).array("deep", ARRAY, 1, &deep).build(), "deep");
}

#[test]
fn tensors_are_ranges_of_the_file() {
    for alignment in [32, 64, 4096] {
        let bytes = GgufBuilder::new(3)
            .alignment(alignment)
            .tensor_f32("a", &[3], &[1.0, 2.0, 3.0])
            .tensor("q", &[2, 32], 8, vec![1; 68])
            .tensor("x", &[256], 23, vec![0; 136])
            .build();
        let file = Gguf::parse(bytes.clone()).unwrap();
        let a = file.tensors().get("a").unwrap();
        let (kind, data) = a.data.as_ref().unwrap();
        assert_eq!((a.shape.as_slice(), kind.name), (&[3][..], "F32"));
        assert_eq!(data.as_ptr(), bytes[a.offset as usize..].as_ptr(), "no copy");
        assert_eq!(a.offset % u64::from(alignment), 0);
        let q = file.tensors().get("q").unwrap();
        assert_eq!((q.shape.as_slice(), q.data.as_ref().unwrap().1.len()), (&[2, 32][..], 68));
        let x = file.tensors().get("x").unwrap();
        assert!(x.data.is_none());
        assert_eq!(x.kind_name(), "IQ4_XS");
        assert_eq!(file.tensors().len(), 3);
    }
}

#[test]
fn files_of_other_kinds_are_named() {
    refused(&b""[..], "0 are left");
    refused(&b"PK\x03\x04 not it"[..], "not a GGUF file");
    refused(&b"version https://git-lfs.github.com/spec/v1\n"[..], "git lfs pull");
    refused(&b"tjgg\x01\0\0\0"[..], "before GGUF");
    refused(&b"FUGG\x03\0\0\0"[..], "big-endian");
    refused(&b"GGUF\0\0\0\x03"[..], "big-endian GGUF file (version 3)");
    refused(&b"GGUF\x04\0\0\0"[..], "version 4; versions 1 to 3");
    refused(&b"GGUF\0\0\0\0"[..], "version 0");
}

#[test]
fn contradictions_are_told_with_their_place() {
    refused(GgufBuilder::new(3).u32("k", 1).u32("k", 2).build(), "\"k\" occurs twice");
    refused(GgufBuilder::new(3).u32("", 1).build(), "metadata key of 0 bytes");
    refused(GgufBuilder::new(3).raw("k", 13, &[0; 8]).build(), "unknown value type 13");
    let one = [1.0f32; 8];
    refused(GgufBuilder::new(3).tensor_f32("t", &[8], &one).tensor_f32("t", &[8], &one).build(), "\"t\" occurs twice");
    refused(GgufBuilder::new(3).tensor_f32("t", &[1, 2, 1, 2, 2], &one).build(), "5 dimensions");
    refused(GgufBuilder::new(3).tensor_f32("t", &[8, 0], &[]).build(), "dimension of 0");
    refused(GgufBuilder::new(3).tensor("t", &[3, 16], 8, vec![0; 68]).build(), "blocks of 32");
    refused(GgufBuilder::new(3).tensor_f32("t", &[9], &one).build(), "cut short");
    refused(GgufBuilder::new(3).alignment(24).build(), "power of two");
    refused(GgufBuilder::new(3).str("general.alignment", "8").build(), "general.alignment");
    let misaligned = GgufBuilder::new(3).alignment(64);
    let mut bytes = misaligned.tensor_f32("t", &[8], &one).build().to_vec();
    let at = bytes.windows(1).rposition(|w| w == b"t").unwrap() + 1 + 4 + 8 + 4;
    bytes[at] = 32;
    refused(bytes, "not aligned to 64");
}

#[test]
fn lengths_that_no_file_has_are_refused_before_memory_is_taken() {
    for huge in [u64::MAX, u64::MAX / 2, 1 << 40, 1 << 32] {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend(huge.to_le_bytes());
        bytes.extend(0u64.to_le_bytes());
        refused(bytes, "at most 65536");
        for kind in [0u32, F32, STRING, ARRAY, 12] {
            let mut value = kind.to_le_bytes().to_vec();
            value.extend(huge.to_le_bytes());
            value.extend([0; 64]);
            assert!(Gguf::parse(GgufBuilder::new(3).raw("k", ARRAY, &value).build()).is_err(), "{kind} {huge}");
        }
        refused(GgufBuilder::new(3).raw("k", STRING, &huge.to_le_bytes()).build(), "are left in the file");
        for shape in [vec![huge as usize], vec![huge as usize, huge as usize], vec![3, huge as usize / 2]] {
            assert!(Gguf::parse(GgufBuilder::new(3).tensor("t", &shape, 0, vec![0; 4]).build()).is_err(), "{shape:?}");
        }
    }
}

#[test]
fn a_model_in_three_parts() {
    let folder = tempfile::tempdir().unwrap();
    let model = TinyLlama::new();
    let whole = Gguf::parse(model.gguf(3).build()).unwrap();
    let path = |i: usize| folder.path().join(format!("m-{i:05}-of-00003.gguf"));
    let mut parts: Vec<GgufBuilder> = (0..3)
        .map(|i| {
            let start = if i == 0 { model.gguf_settings(3) } else { GgufBuilder::new(3) };
            start.raw("split.no", 2, &(i as u16).to_le_bytes()).raw("split.count", 2, &3u16.to_le_bytes()).raw(
                "split.tensors.count",
                5,
                &(whole.tensors().len() as i32).to_le_bytes(),
            )
        })
        .collect();
    for (i, info) in whole.tensors().iter().enumerate() {
        let part = parts[i % 3].clone();
        parts[i % 3] = part.tensor(&info.name, &info.shape, info.code, info.data.as_ref().unwrap().1.to_vec());
    }
    for (i, part) in parts.iter().enumerate() {
        std::fs::write(path(i + 1), part.build()).unwrap();
    }
    for i in 1..=3 {
        let opened = Gguf::open(&path(i)).unwrap();
        assert_eq!(opened.tensors().len(), whole.tensors().len());
        assert_eq!(opened.parts(), [path(1), path(2), path(3)]);
        for info in whole.tensors().iter() {
            assert_eq!(opened.tensors().get(&info.name).unwrap().data, info.data, "{}", info.name);
        }
        assert_eq!(opened.metadata().str("general.architecture").unwrap(), Some("llama"));
    }

    std::fs::copy(path(2), folder.path().join("renamed.gguf")).unwrap();
    assert!(problem(Gguf::open(&folder.path().join("renamed.gguf"))).contains("one of 3 parts"));
    std::fs::copy(path(2), path(3)).unwrap();
    assert!(problem(Gguf::open(&path(1))).contains("part 1 of 3; its name says part 2"));
    std::fs::remove_file(path(3)).unwrap();
    let missing = problem(Gguf::open(&path(1)));
    assert!(missing.contains("m-00003-of-00003.gguf") && missing.contains("missing"), "{missing}");
}
