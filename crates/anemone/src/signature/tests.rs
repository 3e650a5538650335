use anemone_mil::build::FunctionBuilder;
use anemone_mil::types::{DType, StaticType};
use anemone_mil::{Const, Opset, Program};

use super::*;

/// A function with these inputs of fixed shape, one state if a context is given, and logits (1, 1, 8).
fn function(inputs: &[(&str, DType, &[usize])], context: Option<usize>, writes: bool) -> Function {
    use anemone_mil::TensorType;
    let mut f = FunctionBuilder::new(Opset::CoreML8);
    for (name, dtype, shape) in inputs {
        f.input(name, TensorType::fixed(*dtype, shape));
    }
    if let Some(context) = context {
        let state = f.state("kv_cache", &StaticType::new(DType::F16, &[2, 1, context, 4]));
        let old = f.op("read_state", "old", &[("input", state.into())]).unwrap();
        if writes {
            f.ops("write_state", "write", &[("input", state.into()), ("data", old.into())]).unwrap();
        }
    }
    let logits = f.constant("logits", Const::floats(DType::F16, &[1, 1, 8], &[0.0; 8]));
    f.finish(&[logits])
}

fn model(functions: Vec<(&str, Function)>) -> Model {
    let functions = functions.into_iter().map(|(name, f)| (name.to_owned(), f)).collect();
    Model { program: Program { version: 1, functions, ..Program::default() }, ..Model::default() }
}

fn ours(width: usize, context: usize) -> Function {
    function(&[("input_ids", DType::I32, &[1, width]), ("cache_position", DType::I32, &[width])], Some(context), true)
}

fn missing(model: &Model, signature: &str) -> String {
    let misfits = recognize_one(model).unwrap_err();
    misfits.iter().find(|m| m.signature == signature).unwrap().missing.join("; ")
}

#[test]
fn functions_of_several_widths_are_calls_by_width_whatever_their_names() {
    let model = model(vec![("a", ours(16, 64)), ("b", ours(1, 64)), ("c", ours(4, 64))]);
    let (signature, calls) = recognize_one(&model).unwrap();
    assert_eq!(signature.name, "anemone");
    let found: Vec<_> = calls.iter().map(|c| (c.function.as_str(), c.width, c.context, c.vocabulary)).collect();
    assert_eq!(found, [("b", 1, 64, 8), ("c", 4, 64, 8), ("a", 16, 64, 8)]);
}

#[test]
fn what_is_missing_is_named_for_every_signature() {
    let model =
        model(vec![("main", function(&[("token", DType::F32, &[1, 1]), ("extra", DType::I32, &[1])], None, false))]);
    let misfits = recognize_one(&model).unwrap_err();
    assert_eq!(misfits.len(), SIGNATURES.len());
    assert_eq!(
        missing(&model, "token-position"),
        "input `token` is tensor<fp32, [1, 1]>, not integers (1, tokens); input `pos` is missing; input `extra` is not \
         part of it; states are missing"
    );
    let text = misfits[0].to_string();
    assert!(text.starts_with("anemone (input_ids, cache_position → logits, and states): input `input_ids`"), "{text}");
}

#[test]
fn a_call_of_one_token_must_be_there() {
    assert!(missing(&model(vec![("prefill", ours(8, 64))]), "anemone").contains("no function takes 1 token"));
}

#[test]
fn functions_of_one_package_have_one_context() {
    let text = missing(&model(vec![("decode", ours(1, 64)), ("prefill", ours(8, 32))]), "anemone");
    assert!(text.contains("`decode` has 64 positions and 8 logits, `prefill` 32 and 8"), "{text}");
}

#[test]
fn a_width_beyond_the_context_is_no_call() {
    let model = model(vec![("decode", ours(1, 4)), ("prefill", ours(8, 4))]);
    assert_eq!(recognize_one(&model).unwrap().1.len(), 1);
}

#[test]
fn a_state_that_is_never_written_is_found() {
    let ports: &[(&str, DType, &[usize])] = &[("token", DType::I32, &[1, 1]), ("pos", DType::I32, &[1])];
    assert_eq!(unwritten_state(&function(ports, Some(8), false)), Some("kv_cache"));
    assert_eq!(unwritten_state(&function(ports, Some(8), true)), None);
}

/// A part with these inputs and an output of 8 numbers for each token, and a state of so many positions if any.
fn part(inputs: &[(&str, DType, &[usize])], output: &str, tokens: usize, context: Option<usize>) -> Function {
    use anemone_mil::{Port, PortKind, PortShape, TensorType};
    let mut f = FunctionBuilder::new(Opset::CoreML8);
    for (name, dtype, shape) in inputs {
        f.input(name, TensorType::fixed(*dtype, shape));
    }
    if let Some(context) = context {
        f.state("kv_cache", &StaticType::new(DType::F16, &[2, 1, context, 4]));
    }
    let shape = [1, tokens, 8];
    let values = vec![0.0; 8 * tokens];
    let given = f.constant(output, Const::floats(DType::F16, &shape, &values));
    let mut function = f.finish(&[given]);
    let port = |(name, dtype, shape): &(&str, DType, &[usize])| Port {
        name: (*name).to_owned(),
        description: String::new(),
        kind: PortKind::Array { dtype: *dtype, shape: PortShape::Fixed(shape.to_vec()) },
        optional: None,
    };
    function.ports.inputs = inputs.iter().map(port).collect();
    function
}

fn embeddings(width: usize) -> Function {
    part(&[("input_ids", DType::I32, &[1, width])], "hidden_states", width, None)
}

fn layers(width: usize, context: usize) -> Function {
    let inputs: &[(&str, DType, &[usize])] =
        &[("hidden_states", DType::F16, &[1, width, 8]), ("cache_position", DType::I32, &[width])];
    part(inputs, "output_hidden_states", width, Some(context))
}

fn head() -> Function {
    part(&[("hidden_states", DType::F16, &[1, 1, 8])], "logits", 1, None)
}

fn of_parts(parts: Vec<Model>) -> Result<Recognized, String> {
    recognize(&parts.iter().collect::<Vec<_>>()).map_err(|misfits| misfits[0].missing.join("; "))
}

#[test]
fn parts_are_fed_at_the_widths_that_all_have_and_without_logits_where_the_last_has_none() {
    let first = || model(vec![("decode", embeddings(1)), ("prefill", embeddings(4)), ("more", embeddings(16))]);
    let second = || model(vec![("decode", layers(1, 64)), ("prefill", layers(4, 64))]);
    let found = of_parts(vec![first(), second(), model(vec![("main", head())])]).unwrap();
    let steps: Vec<(usize, usize)> = found.steps.iter().map(|step| (step.calls[0].width, step.calls.len())).collect();
    assert_eq!((found.name, steps), ("parts", vec![(1, 3), (4, 2)]));
    assert!(found.steps.iter().flat_map(|step| &step.calls).all(|call| (call.context, call.vocabulary) == (64, 8)));
}

#[test]
fn parts_that_do_not_follow_each_other_are_refused() {
    let one = |f: Function| model(vec![("main", f)]);
    let lacks = |parts: Vec<Function>| of_parts(parts.into_iter().map(one).collect()).unwrap_err();
    let swapped = lacks(vec![layers(1, 64), embeddings(1), head()]);
    assert!(swapped.contains("part 1") && swapped.contains("does not begin with input `input_ids`"), "{swapped}");
    let headless = lacks(vec![embeddings(1), layers(1, 64), layers(1, 64)]);
    assert!(headless.contains("part 3") && headless.contains("it gives no logits"), "{headless}");
    let uneven = lacks(vec![embeddings(1), layers(1, 64), layers(1, 32), head()]);
    assert!(uneven.contains("{32, 64} positions"), "{uneven}");
    let forgetful = lacks(vec![embeddings(1), head()]);
    assert!(forgetful.contains("states are missing"), "{forgetful}");
}
