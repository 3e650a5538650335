//! Decoding: every fixture, and messages that are wrong in one place.

mod common;

use std::collections::BTreeMap;

use anemone_mil::{DType, Kind, PortShape, decode_model};

#[test]
fn every_fixture_decodes_with_nothing_left_out() {
    for (name, path) in common::packages() {
        let model = common::model(&path);
        assert_eq!(model.left_out, Vec::<String>::new(), "{name}");
        assert!(model.function(None).is_some(), "{name}");
        for (function_name, function) in &model.program.functions {
            assert!(!function.ports.inputs.is_empty() && !function.ports.outputs.is_empty(), "{name}");
            assert_eq!(function.states().count(), function.ports.states.len(), "{name} {function_name}");
            assert!(function.body.ops.iter().any(|op| matches!(op.kind, Kind::Const)), "{name} {function_name}");
        }
    }
}

#[test]
fn the_weights_are_those_that_an_independent_reader_sees() {
    for (name, path) in common::packages() {
        let other = decode_model(&common::message(&path), &common::Weights::of(&path)).unwrap();
        assert!(common::model(&path) == other, "{name}");
    }
}

#[test]
fn the_cache_of_the_guide_is_one_state() {
    let model = common::model(&common::fixtures().join("tiny_guide_kv1_fp16/model.mlpackage"));
    let main = model.function(None).unwrap();
    assert_eq!((model.specification_version, main.opset.as_str()), (9, "CoreML8"));
    let (_, name, ty) = main.states().next().unwrap();
    assert_eq!(name, "kv_cache");
    assert_eq!(ty.as_ref(), Some(&main.ports.states[0].ty));
    assert_eq!(ty.unwrap().dtype, DType::F16);
    let token = main.ports.inputs.iter().find(|p| p.name == "token").unwrap();
    assert_eq!(token.kind.array(), Some((DType::I32, &PortShape::Fixed(vec![1, 1]))));
    let read = main.body.ops.iter().find(|op| op.name_of_kind == "read_state").unwrap();
    assert_eq!(read.operand_args("input").len(), 1);
    assert!(read.operand_args("name").is_empty());
}

#[test]
fn two_functions_share_their_weights() {
    let model = common::model(&common::fixtures().join("multifunction/model.mlpackage"));
    assert_eq!(model.program.functions.keys().collect::<Vec<_>>(), ["decode", "prefill"]);
    assert!(model.default_function.is_some());
    let offsets = |name: &str| {
        let blobs =
            model.program.functions[name].body.ops.iter().filter_map(|op| op.constant()?.tensor()?.blob.clone());
        let mut all: Vec<u64> = blobs.map(|b| b.offset).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    assert_eq!(offsets("decode"), offsets("prefill"));
    assert_eq!(offsets("decode").len(), 25);
}

#[test]
fn ios_16_compressions_keep_their_parameters_as_attributes_and_executors_see_them_as_operands() {
    let model = common::model(&common::fixtures().join("ios16_lut4/model.mlpackage"));
    let main = model.function(None).unwrap();
    let op = main.body.ops.iter().find(|op| op.name_of_kind == "constexpr_lut_to_dense").unwrap();
    assert!(op.args("lut").is_empty());
    assert_eq!(op.operand_args("lut").len(), 1);
    assert_eq!(op.operand_args("shape").len(), 1);
}

#[test]
fn fixtures_use_these_operations() {
    // What the registry must cover; kept here so that a change of the decoder shows.
    let mut count = BTreeMap::new();
    for (_, path) in common::packages() {
        for function in common::model(&path).program.functions.values() {
            for op in &function.body.ops {
                *count.entry(op.name_of_kind.clone()).or_insert(0) += 1;
            }
        }
    }
    assert!(count.len() > 36, "{count:?}");
    assert!(count["write_state"] > 0 && count["constexpr_blockwise_shift_scale"] > 0);
}
