use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anemone_cli::tensor_file;
use anemone_cli::values::{Kind, Values};
use anemone_mil::types::{DType, StaticType};
use anemone_mil::{Buffer, Tensor};

use super::support::{anemone, fixtures, names, package, tensors};

fn floats(values: &Values<'_>) -> Vec<f32> {
    let n = values.shape.iter().product();
    match values.to_tensor(&StaticType::new(DType::F32, &[n])).unwrap().data {
        Buffer::F32(v) => v,
        other => panic!("{other:?}"),
    }
}

fn ints(values: &Values<'_>) -> Vec<i32> {
    let n = values.shape.iter().product();
    match values.to_tensor(&StaticType::new(DType::I32, &[n])).unwrap().data {
        Buffer::I32(v) => v,
        other => panic!("{other:?}"),
    }
}

/// What the fixtures' README allows.
fn tolerance(name: &str) -> f32 {
    if name.ends_with("fp32") { 0.001 } else { 0.01 }
}

fn assert_close(what: &str, found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst <= tolerance && found.iter().all(|x| x.is_finite()), "{what}: off by {worst}");
}

fn inputs(name: &str, tokens: &[i32], past: usize) -> BTreeMap<String, Tensor> {
    let q = tokens.len();
    let ids = |shape: &[usize]| Tensor::ints(DType::I32, shape, tokens);
    let named: Vec<(&str, Tensor)> = if name.starts_with("ios16") {
        vec![("tokens", ids(&[1, q]))]
    } else if name.starts_with("tiny_guide") {
        vec![("token", ids(&[1, 1])), ("pos", Tensor::ints(DType::I64, &[1], &[past as i32]))]
    } else {
        let see = |i: usize, j: usize| if j <= past + i { 0.0 } else { -1e4 };
        let mask: Vec<f32> = (0..q).flat_map(|i| (0..past + q).map(move |j| see(i, j))).collect();
        // In 32 bits, to be converted to the half floats of the port.
        vec![("inputIds", ids(&[1, q])), ("causalMask", Tensor::floats(DType::F32, &[1, 1, q, past + q], &mask))]
    };
    named.into_iter().map(|(n, t)| (n.to_owned(), t)).collect()
}

/// Feeds a fixture's tokens, one process a call, with the state in a file between them; compares with PyTorch.
fn drive(name: &str, flags: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let at = |file: &str| folder.path().join(file).to_str().unwrap().to_owned();
    let reference = tensors(&fixtures().join(name).join("ref.safetensors"));
    let tokens = ints(&reference["tokens"]);
    let stateless = name.starts_with("ios16");
    let calls = match reference.get("call_lengths") {
        Some(lengths) => ints(lengths).iter().map(|&n| n as usize).collect(),
        None if stateless => vec![tokens.len()],
        None => vec![1; tokens.len()],
    };
    let (mut past, mut found) = (0, Vec::new());
    for q in calls {
        tensor_file::write(Path::new(&at("in")), &inputs(name, &tokens[past..past + q], past), HashMap::new()).unwrap();
        let path = package(name);
        let (input, output, state) = (at("in"), at("out"), at("state"));
        let mut arguments =
            vec!["predict", path.to_str().unwrap(), "--inputs", &input, "--outputs", &output, "--threads", "1"];
        if !stateless {
            arguments.extend(["--state", &state]);
        }
        if name == "multifunction" {
            arguments.extend(["--function", if q == 1 { "decode" } else { "prefill" }]);
        }
        arguments.extend(flags);
        assert_eq!(anemone(arguments).ok(), "");
        let outputs = tensors(Path::new(&output));
        let logits = outputs.get("logits").or(outputs.get("y")).unwrap();
        assert_eq!(logits.kind, if name.ends_with("fp32") { Kind::F32 } else { Kind::F16 }, "{name}");
        found.extend(floats(logits));
        past += q;
    }
    let expected = reference.get("logits").or(reference.get("y")).unwrap();
    assert_close(name, &found, &floats(expected), tolerance(name));
    for (state, expected) in reference.iter().filter_map(|(n, v)| Some((n.strip_prefix("state_")?, v))) {
        let found = &tensors(Path::new(&at("state")))[state];
        assert_eq!((found.kind, &found.shape), (Kind::F16, &expected.shape), "{name}: {state}");
        assert_close(&format!("{name}: {state}"), &floats(found), &floats(expected), tolerance(name));
    }
}

#[test]
fn every_fixture_call_by_call_with_its_state_in_a_file() {
    for name in names() {
        drive(&name, &[]);
    }
}

#[test]
fn the_interpreter_agrees_as_well() {
    for name in ["tiny_guide_kv1_fp16", "tiny_article_fp32", "multifunction", "ios16_lut4", "zoo_sparse50_int8"] {
        drive(name, &["--reference"]);
    }
}

#[test]
fn inputs_from_the_command_line_and_outputs_in_words() {
    let guide = package("tiny_guide_kv1_fp16");
    let guide = guide.to_str().unwrap();
    let text = anemone(["predict", guide, "--input", "token=3", "--input", "pos=0"]).ok();
    assert!(text.starts_with("logits: tensor<fp16, [") && text.contains("lowest"), "{text}");
    let json = anemone(["predict", guide, "--input", "token=random:1:0:255", "--input", "pos=zeros", "--json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["function"], &json["outputs"]["logits"]["dtype"]), (&"main".into(), &"fp16".into()));

    let article = package("tiny_article_fp16");
    let article = article.to_str().unwrap();
    let flexible = ["--input", "inputIds=range", "--shape", "inputIds=1,3", "--input", "causalMask=zeros"];
    let run = |shape: &str| {
        let more = ["--shape", shape];
        anemone(["predict", article].iter().chain(&flexible).chain(&more))
    };
    assert!(run("causalMask=1,1,3,3").ok().contains("[1, 3, 256]"));
    run("causalMask=1,1,3").fails(2, &["causalMask", "expected [1, 1, "]);
    run("causalMask=1,1,3,100000").fails(2, &["causalMask", "expected [1, 1, "]);
}

#[test]
fn numpy_files_are_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let npy = folder.path().join("token.npy");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let header = "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 1), }";
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(3i64.to_le_bytes());
    std::fs::write(&npy, &bytes).unwrap();
    let guide = package("tiny_guide_kv2_fp16");
    let run = |token: &str| {
        anemone(["predict", guide.to_str().unwrap(), "--input", "pos=0", "--input", &format!("token={token}")])
    };
    assert_eq!(run(npy.to_str().unwrap()).ok(), run("3").ok());
    std::fs::write(&npy, &bytes[..bytes.len() - 1]).unwrap();
    run(npy.to_str().unwrap()).fails(1, &["token.npy", "asks for 8"]);
    run("nowhere.npy").fails(1, &["nowhere.npy"]);
}

#[test]
fn inputs_that_do_not_fit_are_named() {
    let path = package("tiny_guide_kv1_fp16");
    let run = |more: &[&str]| anemone(["predict", path.to_str().unwrap()].iter().chain(more));
    run(&["--input", "token=3"]).fails(2, &["`pos`", "int32 [1]", "--input pos="]);
    run(&["--input", "token=3", "--input", "tokens=1"]).fails(2, &["`tokens`", "token, pos"]);
    run(&["--input", "token=0.5", "--input", "pos=0"]).fails(2, &["`token`", "0.5", "int32"]);
    run(&["--input", "token=3000000000", "--input", "pos=0"]).fails(2, &["`token`", "3000000000", "int32"]);
    run(&["--input", "token=1,2", "--input", "pos=0"]).fails(2, &["`token`", "2 numbers"]);
    run(&["--function", "decode"]).fails(2, &["`decode`", "main"]);
    run(&["--inputs", "nowhere.safetensors"]).fails(1, &["nowhere.safetensors"]);
    let reference = fixtures().join("tiny_guide_kv1_fp16/ref.safetensors");
    run(&["--inputs", reference.to_str().unwrap()]).fails(2, &["no input", "token, pos"]);
    run(&["--input", "token=3", "--input", "token=4", "--input", "pos=0"]).fails(2, &["--input token", "given twice"]);
    let err = run(&["--input", "token=3", "--input", "pos=64"]).fails(1, &["indices into 64", "found 64"]);
    assert!(!err.contains("Some("), "{err}");
}

#[test]
fn states_that_do_not_fit_are_refused_and_stay_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state.safetensors");
    let call = |fixture: &str, more: &[&str]| {
        let (path, state) = (package(fixture), state.to_str().unwrap());
        let base = ["predict", path.to_str().unwrap(), "--state", state, "--input", "token=1", "--input", "pos=0"];
        anemone(base.iter().chain(more))
    };
    call("tiny_guide_kv1_fp16", &[]).ok();
    let before = std::fs::read(&state).unwrap();
    call("tiny_guide_kv2_fp16", &[]).fails(1, &["another package", "state.safetensors"]);
    // A call that fails changes nothing.
    call("tiny_guide_kv1_fp16", &["--outputs", "/nowhere/out.safetensors"]).fails(1, &["/nowhere/out.safetensors"]);
    call("tiny_guide_kv1_fp16", &["--outputs", folder.path().to_str().unwrap()]).fails(1, &["is a folder"]);
    let same = format!("{}/./state.safetensors", folder.path().display());
    for both in [state.to_str().unwrap(), &same] {
        call("tiny_guide_kv1_fp16", &["--outputs", both]).fails(2, &["--outputs and --state"]);
    }
    assert_eq!(std::fs::read(&state).unwrap(), before);
    std::fs::write(&state, &before[..before.len() - 1]).unwrap();
    call("tiny_guide_kv1_fp16", &[]).fails(1, &["state.safetensors", "no safetensors file"]);

    // Somebody else's file, without the name of a package: its tensors must be the states.
    let write = |name: &str, shape: &[usize]| {
        let zeros = Tensor::zeros(StaticType::new(DType::F32, shape));
        tensor_file::write(&state, &BTreeMap::from([(name.to_owned(), zeros)]), HashMap::new()).unwrap();
    };
    write("kv_cache", &[4, 4, 64, 16]);
    call("tiny_guide_kv1_fp16", &[]).ok();
    write("kv_cache", &[4, 4, 32, 16]);
    call("tiny_guide_kv1_fp16", &[]).fails(1, &["kv_cache", "[4, 4, 64, 16]", "[4, 4, 32, 16]"]);
    write("other", &[4, 4, 64, 16]);
    call("tiny_guide_kv1_fp16", &[]).fails(1, &["`other`", "kv_cache"]);
    let path = package("ios16_plain");
    let stateless = ["predict", path.to_str().unwrap(), "--input", "tokens=1", "--state", state.to_str().unwrap()];
    anemone(stateless).fails(1, &["no states"]);
}

#[test]
fn tokens_and_positions_of_a_converted_model_are_those_that_it_knows() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny/model");
    let run = |token: &str, position: &str| {
        let (token, position) = (format!("input_ids={token}"), format!("cache_position={position}"));
        anemone(["predict", model.to_str().unwrap(), "-f", "decode", "--input", &token, "--input", &position])
    };
    run("383", "255").ok();
    run("-1", "0").fails(2, &["input `input_ids`", "-1 is not a token", "0 to 383"]);
    run("384", "0").fails(2, &["input `input_ids`", "384 is not a token"]);
    run("1", "256").fails(2, &["input `cache_position`", "256 is not a position", "0 to 255"]);
    run("1", "-1").fails(2, &["input `cache_position`"]);
}
