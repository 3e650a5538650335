//! Models in parts, through every command: those of our own folders and those of ANEMLL's.

use std::fs;
use std::path::{Path, PathBuf};

use anemone_mil::Const;
use anemone_package::Package;
use anemone_package::bundle::{self, BundleManifest, digest_of_parts, hex};
use half::f16;
use serde_json::Value;
use tempfile::TempDir;

use super::support::{anemone, tiny_checkpoint};

const NAMES: [&str; 4] = ["embeddings", "layers-1", "layers-2", "head"];

/// The tiny checkpoint, and what it was converted to in four parts.
struct Model {
    folder: TempDir,
    source: String,
    model: String,
}

impl Model {
    fn of(profile: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = tiny_checkpoint(folder.path()).to_str().unwrap().to_owned();
        let model = folder.path().join("model").to_str().unwrap().to_owned();
        let options = ["--context", "32", "--prefill", "4", "--profile", profile, "--parts", "4"];
        anemone(["convert", &source, "-o", &model].iter().chain(&options)).ok();
        Self { folder, source, model }
    }

    fn part(&self, name: &str) -> PathBuf {
        Path::new(&self.model).join(format!("{name}.mlpackage"))
    }

    /// The same packages in a folder of ANEMLL's.
    fn as_anemll(&self) -> String {
        let folder = self.folder.path().join("anemll");
        fs::create_dir(&folder).unwrap();
        let meta = "model_info:\n  name: tiny\n  parameters:\n    model_prefix: llama\n    num_chunks: 2\n";
        fs::write(folder.join("meta.yaml"), meta).unwrap();
        fs::copy(Path::new(&self.model).join(bundle::TOKENIZER), folder.join(bundle::TOKENIZER)).unwrap();
        let names = ["embeddings", "FFN_PF_chunk_01of02", "FFN_PF_chunk_02of02", "lm_head"];
        for (from, to) in NAMES.iter().zip(names) {
            fs::rename(self.part(from), folder.join(format!("llama_{to}.mlpackage"))).unwrap();
        }
        folder.to_str().unwrap().to_owned()
    }
}

fn json(out: &str) -> Value {
    serde_json::from_str(out).unwrap()
}

fn names(all: &Value) -> Vec<&str> {
    all.as_array().unwrap().iter().map(|part| part["name"].as_str().unwrap()).collect()
}

#[test]
fn lint_looks_at_every_part_and_has_one_exit_code() {
    let m = Model::of("ane");
    let clean = anemone(["lint", &m.model, "--strict"]).ok();
    for word in ["4 parts, profile ane", "part embeddings: nothing was found", "part head: nothing", "(41 rules)"] {
        assert!(clean.contains(word), "{word:?}: {clean}");
    }
    let all = json(&anemone(["lint", &m.model, "--json"]).ok());
    assert_eq!((names(&all["parts"]), &all["findings"]), (NAMES.to_vec(), &serde_json::json!([])));

    // A part of another profile is found out, and named.
    let other = Model::of("portable");
    let (to, from) = (m.part("layers-2"), other.part("layers-2"));
    fs::remove_dir_all(&to).unwrap();
    fs::rename(from, &to).unwrap();
    let done = anemone(["lint", &m.model]).run();
    assert_eq!(done.code, Some(1), "{}{}", done.out, done.err);
    assert!(done.out.contains("part layers-1: nothing was found"), "{}", done.out);
    assert!(!done.out.contains("part layers-2: nothing") && done.out.contains("in 1 of 4 parts."), "{}", done.out);
    let all = json(&anemone(["lint", &m.model, "--json"]).run().out);
    let findings = all["findings"].as_array().unwrap();
    assert!(!findings.is_empty() && findings.iter().all(|f| f["model_part"] == "layers-2"), "{findings:?}");
    assert_eq!(all["parts"][2]["counts"], all["counts"]);
    // A part alone is looked at alone.
    let alone = anemone(["lint", m.part("head").to_str().unwrap(), "--strict"]).ok();
    assert!(!alone.contains("parts"), "{alone}");
}

#[test]
fn inspect_shows_the_parts_and_which_feeds_which() {
    let m = Model::of("ane");
    let all = json(&anemone(["inspect", &m.model, "--json"]).ok());
    assert_eq!(names(&all["parts"]), NAMES);
    let bytes = |part: &Value| part["weights"]["bytes"].as_u64().unwrap();
    let sum: u64 = all["parts"].as_array().unwrap().iter().map(bytes).sum();
    assert_eq!(all["weight_bytes"].as_u64(), Some(sum));
    assert_eq!(all["parts"][1]["functions"][0]["states"].as_array().unwrap().len(), 1);
    let steps = all["steps"].as_array().unwrap();
    assert_eq!(steps.iter().map(|s| s["tokens"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 4]);
    let calls = steps[0]["calls"].as_array().unwrap();
    assert_eq!((calls.len(), calls[0]["from_host"][0].as_str()), (4, Some("input_ids")));
    assert_eq!((&calls[1]["part"], &calls[1]["from_before"][0]), (&"layers-1".into(), &"hidden_states".into()));
    assert!(calls[3]["gives"][0].as_str().unwrap().starts_with("logits"), "{calls:?}");
    assert_eq!(all["misfits"], serde_json::json!([]));

    let text = anemone(["inspect", &m.model]).ok();
    for word in ["4 parts", "context 32", "state ", "1 token a call", "hidden_states of the part before"] {
        assert!(text.contains(word), "{word:?}: {text}");
    }
    let one = anemone(["inspect", m.part("layers-1").to_str().unwrap()]).ok();
    assert!(one.contains("states, ") && !one.contains("4 parts"), "{one}");
    let mil = anemone(["inspect", &m.model, "--mil"]).ok();
    assert!(NAMES.iter().all(|name| mil.contains(&format!("// part {name}\n"))));
    // One that is missing is named.
    fs::rename(m.part("layers-2"), m.part("away")).unwrap();
    anemone(["inspect", &m.model]).fails(1, &["layers-2.mlpackage", "part 3 of the 4"]);
}

#[test]
fn placement_is_told_of_each_part_and_in_total() {
    let m = Model::of("ane");
    let all = json(&anemone(["placement", &m.model, "--predict", "--json"]).ok());
    assert_eq!(names(&all["parts"]), NAMES);
    let decode = |part: &Value| {
        let functions = part["functions"].as_array().unwrap();
        functions.iter().find(|f| f["name"] == "decode").unwrap()["operations"].as_u64().unwrap()
    };
    let sum: u64 = all["parts"].as_array().unwrap().iter().map(decode).sum();
    let total = &all["total"][0];
    assert_eq!((total["call"].as_str(), total["operations"].as_u64()), (Some("1 token a call"), Some(sum)));
    let text = anemone(["placement", &m.model, "--predict", "--min-ane", "0.5"]).ok();
    assert!(text.contains("part layers-1") && text.contains("in all 4 parts\n  1 token a call: "), "{text}");
    anemone(["placement", &m.model, "--predict", "--min-ane", "1"]).fails(1, &["less than the 100.0 %", "a call`"]);
}

#[test]
fn predict_takes_one_part_by_name_or_by_path() {
    let m = Model::of("portable");
    anemone(["predict", &m.model, "--input", "input_ids=5"])
        .fails(2, &["in parts; name one by --part", "embeddings, layers-1, layers-2, head"]);
    anemone(["predict", &m.model, "--part", "tail"]).fails(2, &["--part tail", "embeddings, layers-1"]);
    let hidden = m.folder.path().join("hidden.safetensors");
    let hidden = hidden.to_str().unwrap();
    let ids = ["--function", "decode", "--input", "input_ids=5"];
    anemone(["predict", &m.model, "--part", "embeddings", "--outputs", hidden].iter().chain(&ids)).ok();
    let path = m.part("embeddings");
    let by_path = anemone(["predict", path.to_str().unwrap(), "--json"].iter().chain(&ids)).ok();
    assert_eq!(json(&by_path)["outputs"]["output_hidden_states"]["shape"], serde_json::json!([1, 1, 64]));
    anemone(["predict", path.to_str().unwrap(), "--part", "embeddings"].iter().chain(&ids)).fails(2, &["one package"]);
    assert_eq!(super::support::tensors(Path::new(hidden)).keys().collect::<Vec<_>>(), ["output_hidden_states"]);
}

#[test]
fn doctor_and_bench_run_the_chain() {
    let m = Model::of("ane");
    let all = json(&anemone(["doctor", &m.model, "--soak", "8", "--json"]).ok());
    let steps = all["examinations"][0]["findings"].as_array().unwrap();
    let plain = steps.iter().find(|f| f["step"] == "plain").unwrap_or_else(|| panic!("{steps:?}"));
    assert_eq!((&plain["grade"], &steps[0]["grade"]), (&"ok".into(), &"ok".into()), "{plain}");
    let bench = ["bench", &m.model, "--prompt", "6", "--tokens", "8", "--turns", "2", "--turn-tokens", "4", "--json"];
    let bench = json(&anemone(bench).ok());
    assert!(bench["columns"].as_array().unwrap().iter().any(|c| c["measured"].is_object()), "{bench}");
}

/// Multiplies a matrix of the second half of the layers, so that half floats cannot hold what it gives; the manifest says so.
fn overflowing(m: &Model) {
    let path = m.part("layers-2");
    let mut model = anemone_mil::load(&path).unwrap();
    let mut changed = 0;
    for op in model.program.functions.values_mut().flat_map(|f| &mut f.body.ops) {
        let label = op.label().unwrap_or_default().to_owned();
        if let Some(Const::Tensor(tensor)) = op.attributes.get_mut("val")
            && label.contains("down_proj")
            && tensor.bytes.len() > 1000
        {
            let values = tensor.bytes.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32());
            let large = values.flat_map(|v| f16::from_f32((v * 1e6).clamp(-6e4, 6e4)).to_le_bytes());
            tensor.bytes = large.collect::<Vec<u8>>().into();
            tensor.blob = None;
            changed += 1;
        }
    }
    assert!(changed > 0, "no such matrix");
    fs::remove_dir_all(&path).unwrap();
    anemone_mil::encode::write(&model, &path).unwrap();
    let mut manifest = BundleManifest::read(Path::new(&m.model)).unwrap();
    let digests: Vec<_> = NAMES.iter().map(|name| Package::open(&m.part(name)).unwrap().digest().unwrap()).collect();
    manifest.parts[2].sha256 = hex(&digests[2]);
    manifest.package_sha256 = hex(&digest_of_parts(&digests));
    fs::write(Path::new(&m.model).join(bundle::MANIFEST), manifest.to_json()).unwrap();
}

#[test]
fn what_is_not_finite_in_half_floats_has_its_part_and_operation() {
    let m = Model::of("portable");
    let verify = ["verify", &m.model, "--against", &m.source, "--tokens", "8", "--strict-fp16", "--json"];
    let all = json(&anemone(verify).ok());
    assert_eq!(all["strict"][0]["overflows"], serde_json::json!([]), "{all}");
    overflowing(&m);
    let done = anemone(verify).run();
    let found = json(&done.out)["strict"][0]["overflows"][0].as_str().unwrap().to_owned();
    assert_eq!(done.code, Some(1));
    assert!(found.contains("part `layers-2`, function `decode`: ") && found.contains("was not finite"), "{found}");
    let run = ["run", "-m", &m.model, "--strict-fp16", "--backend", "cpu", "--max-tokens", "2", "Hi"];
    let err = anemone(run).run().err;
    assert!(err.contains("in half floats: part `layers-2`, function"), "{err}");
    // A call of the part alone names the operation too.
    let part = ["predict", &m.model, "--part", "layers-2", "--function", "decode", "--strict-fp16"];
    let values = ["--input", "hidden_states=random:1", "--input", "cache_position=0"];
    let err = anemone(part.iter().chain(&values)).run().err;
    assert!(err.contains("in half floats: ") && err.contains("was not finite"), "{err}");
}

#[test]
fn folders_of_anemll_are_models_in_parts_too() {
    let m = Model::of("ane");
    let anemll = m.as_anemll();
    let all = json(&anemone(["inspect", &anemll, "--json"]).ok());
    assert_eq!(names(&all["parts"])[1], "llama_FFN_PF_chunk_01of02");
    assert_eq!(all["steps"][0]["calls"].as_array().unwrap().len(), 4);
    let clean = anemone(["lint", &format!("{anemll}/meta.yaml"), "--profile", "ane"]).ok();
    assert!(clean.contains("part llama_lm_head: nothing was found"), "{clean}");
    anemone(["placement", &anemll, "--predict"]).ok();
    anemone(["verify", &anemll, "--against", &m.source, "--tokens", "8", "--strict-fp16"]).ok();
    anemone(["predict", &anemll, "--part", "llama_embeddings", "--input", "input_ids=5"]).ok();
    anemone(["doctor", &anemll, "--soak", "4"]).ok();
}
