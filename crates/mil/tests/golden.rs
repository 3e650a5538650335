//! The interpreter against PyTorch's outputs for the same packages.

mod common;

use std::ops::Range;
use std::path::PathBuf;

use anemone_mil::interpret::{Interpreter, Tensors};
use anemone_mil::{DType, Function, Tensor};
use safetensors::{Dtype, SafeTensors};

/// What PyTorch says of one package.
struct Reference {
    bytes: Vec<u8>,
}

impl Reference {
    fn of(name: &str) -> Self {
        let path: PathBuf = common::fixtures().join(name).join("ref.safetensors");
        Self { bytes: std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())) }
    }

    /// Shape and elements of one tensor, if there is one of that name.
    fn find(&self, name: &str) -> Option<(Vec<usize>, Vec<f32>)> {
        let file = SafeTensors::deserialize(&self.bytes).expect("a file of tensors");
        let t = file.tensor(name).ok()?;
        let values = match t.dtype() {
            Dtype::F32 => t.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            Dtype::F16 => t.data().as_chunks().0.iter().map(|b| half::f16::from_le_bytes(*b).to_f32()).collect(),
            Dtype::I32 => t.data().as_chunks().0.iter().map(|b| i32::from_le_bytes(*b) as f32).collect(),
            Dtype::I64 => t.data().as_chunks().0.iter().map(|b| i64::from_le_bytes(*b) as f32).collect(),
            other => panic!("{name} is of {other:?}"),
        };
        Some((t.shape().to_vec(), values))
    }

    fn get(&self, name: &str) -> (Vec<usize>, Vec<f32>) {
        self.find(name).unwrap_or_else(|| panic!("no expected `{name}`"))
    }

    fn ints(&self, name: &str) -> Vec<i32> {
        self.get(name).1.into_iter().map(|v| v as i32).collect()
    }
}

/// Adds what is wrong with rows of outputs: an error beyond the tolerance, or another largest element.
fn compare(place: &str, found: &[f32], expected: &[f32], width: usize, tolerance: f32, wrong: &mut Vec<String>) {
    assert_eq!(found.len(), expected.len(), "{place}");
    let best = |row: &[f32]| (0..width).max_by(|&a, &b| row[a].total_cmp(&row[b]));
    for (i, (f, e)) in found.chunks(width).zip(expected.chunks(width)).enumerate() {
        let error = f.iter().zip(e).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        if error.is_nan() || error > tolerance || best(f) != best(e) {
            wrong.push(format!("{place}, row {i}: off by {error}, largest {:?} for {:?}", best(f), best(e)));
        }
    }
}

/// Makes the inputs of a call that feeds tokens of a range.
type Feed<'a> = &'a dyn Fn(&Function, &[i32], Range<usize>) -> Tensors;

/// Calls a package that keeps its cache in states, and compares its logits and, at the end, its states.
fn converse(name: &str, path: &std::path::Path, feed: Feed<'_>, wrong: &mut Vec<String>) {
    let (model, reference) = (common::model(path), Reference::of(name));
    let function = model.function(None).expect("a function");
    let tolerance = if name.ends_with("fp32") { 0.001 } else { 0.01 };
    let (tokens, (shape, logits)) = (reference.ints("tokens"), reference.get("logits"));
    let width = *shape.last().expect("an axis of logits");
    let lengths = match reference.find("call_lengths") {
        Some((_, lengths)) => lengths.into_iter().map(|n| n as usize).collect(),
        None => vec![1; tokens.len()],
    };
    let interpreter = Interpreter::new(function);
    let mut states = interpreter.fresh_states();
    let mut position = 0;
    for n in lengths {
        let call = position..position + n;
        let found = interpreter
            .run(&feed(function, &tokens, call.clone()), &mut states)
            .unwrap_or_else(|e| panic!("{name} at {position}: {e}"));
        let expected = &logits[call.start * width..call.end * width];
        let found = found["logits"].as_f32().expect("floating logits");
        compare(&format!("{name} at {position}"), found, expected, width, tolerance, wrong);
        position += n;
    }
    for (state, content) in &states {
        let (shape, expected) = reference.get(&format!("state_{state}"));
        assert_eq!(shape, content.ty.shape.to_vec(), "{name} {state}");
        let found = content.as_f32().expect("a floating state");
        let error = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        if error > tolerance {
            wrong.push(format!("{name}: state {state} is off by {error}"));
        }
    }
}

/// Tokens and a causal mask over the past and the new ones.
fn article(function: &Function, tokens: &[i32], call: Range<usize>) -> Tensors {
    let mask = function.ports.inputs.iter().find(|p| p.name == "causalMask").and_then(|p| p.kind.array());
    let sees = |i: usize, j: usize| if j <= i { 0.0 } else { -1e4 };
    let rows: Vec<f32> = call.clone().flat_map(|i| (0..call.end).map(move |j| sees(i, j))).collect();
    let mask = Tensor::floats(mask.expect("an input `causalMask`").0, &[1, 1, call.len(), call.end], &rows);
    let ids = Tensor::ints(DType::I32, &[1, call.len()], &tokens[call]);
    Tensors::from([("inputIds".to_owned(), ids), ("causalMask".to_owned(), mask)])
}

/// One token and its position.
fn guide(_: &Function, tokens: &[i32], call: Range<usize>) -> Tensors {
    let position = Tensor::ints(DType::I32, &[1], &[call.start as i32]);
    let token = Tensor::ints(DType::I32, &[1, 1], &tokens[call]);
    Tensors::from([("token".to_owned(), token), ("pos".to_owned(), position)])
}

#[test]
fn stateful_packages_give_the_logits_and_states_of_pytorch() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, path) in common::packages() {
        let feed: Feed<'_> = match name.as_str() {
            n if n.starts_with("zoo_") || n.starts_with("tiny_article_") => &article,
            n if n.starts_with("tiny_guide_") => &guide,
            _ => continue,
        };
        converse(&name, &path, feed, &mut wrong);
        count += 1;
    }
    assert!(count >= 20, "only {count} stateful packages among the fixtures");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ios_16_forms_of_compressed_weights_give_the_outputs_of_pytorch() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, path) in common::packages().into_iter().filter(|(name, _)| name.starts_with("ios16_")) {
        let (model, reference) = (common::model(&path), Reference::of(&name));
        let function = model.function(None).expect("a function");
        let tokens = Tensor::ints(DType::I32, &[1, 6], &reference.ints("tokens"));
        let found = Interpreter::new(function)
            .run(&Tensors::from([("tokens".to_owned(), tokens)]), &mut Tensors::new())
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let (shape, expected) = reference.get("y");
        let width = *shape.last().expect("an axis of the output");
        compare(&name, found["y"].as_f32().expect("a floating output"), &expected, width, 0.01, &mut wrong);
        count += 1;
    }
    assert_eq!(count, 4, "packages of iOS 16 among the fixtures");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
