//! LoRA adapters: base weights that lack exactly what an adapter adds give, with it, the models whose logits PyTorch gave.
//!
//! `W' = W − scale · B · A` is computed here in double floats by the formula of PEFT, with the weights `W` of a golden. What
//! is converted from `W'` with the adapter has to answer as PyTorch did for `W`.

use std::collections::BTreeMap;
use std::path::Path;

use anemone_convert::Source;
use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

use crate::architectures::{answers_like, folder};

/// A matrix, row by row.
#[derive(Clone)]
struct Matrix {
    shape: [usize; 2],
    values: Vec<f64>,
}

/// Numbers that look like nothing in particular, from −1 to 1.
fn drawn(shape: [usize; 2], seed: u64) -> Matrix {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut one = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        // In bf16, so that every form of file holds the same.
        bf16::from_f64((x >> 11) as f64 / (1u64 << 52) as f64 - 1.0).to_f64()
    };
    Matrix { shape, values: (0..shape[0] * shape[1]).map(|_| one()).collect() }
}

type Stored = (Dtype, Vec<usize>, Vec<u8>);

fn stored(matrix: &Matrix, dtype: Dtype) -> Stored {
    let bytes = |v: &f64| match dtype {
        Dtype::F32 => (*v as f32).to_le_bytes().to_vec(),
        Dtype::BF16 => bf16::from_f64(*v).to_le_bytes().to_vec(),
        _ => f16::from_f64(*v).to_le_bytes().to_vec(),
    };
    (dtype, matrix.shape.to_vec(), matrix.values.iter().flat_map(bytes).collect())
}

fn write(path: &Path, tensors: &BTreeMap<String, Stored>) {
    let mut views = BTreeMap::new();
    for (name, (dtype, shape, bytes)) in tensors {
        views.insert(name.clone(), TensorView::new(*dtype, shape.clone(), bytes).unwrap());
    }
    safetensors::serialize_to_file(views, None, path).unwrap();
}

/// A base model and an adapter, in folders.
struct Case {
    base: tempfile::TempDir,
    adapter: tempfile::TempDir,
    tensors: BTreeMap<String, Stored>,
    config: Value,
}

impl Case {
    /// An adapter of rank 4 for each matrix of the golden `name` whose name ends in one of `modules`.
    fn new(name: &str, modules: &[&str], config: &Value, scale: f64) -> Self {
        let golden = folder(name);
        let (base, adapter) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::copy(golden.join("config.json"), base.path().join("config.json")).unwrap();
        let bytes = std::fs::read(golden.join("model.safetensors")).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let (mut weights, mut tensors) = (BTreeMap::new(), BTreeMap::new());
        for (i, (name, view)) in file.tensors().into_iter().enumerate() {
            let as_stored = (view.dtype(), view.shape().to_vec(), view.data().to_vec());
            let module = name.strip_suffix(".weight").unwrap_or(&name);
            if !modules.iter().any(|end| module.ends_with(end)) {
                weights.insert(name, as_stored);
                continue;
            }
            assert_eq!(view.dtype(), Dtype::F16, "goldens are half floats");
            let [rows, columns] = view.shape()[..] else { panic!("{name} is no matrix") };
            let seed = i as u64 + 1;
            let embedding = module.ends_with("embed_tokens");
            let a = drawn([4, if embedding { rows } else { columns }], seed);
            let b = drawn([if embedding { columns } else { rows }, 4], seed + 1000);
            let mut w = Matrix {
                shape: [rows, columns],
                values: view.data().as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f64()).collect(),
            };
            for r in 0..rows {
                for c in 0..columns {
                    let product = |k: usize| {
                        let (out, input) = if embedding { (c, r) } else { (r, c) };
                        b.values[out * 4 + k] * a.values[k * a.shape[1] + input]
                    };
                    w.values[r * columns + c] -= scale * (0..4).map(product).sum::<f64>();
                }
            }
            weights.insert(name.clone(), stored(&w, Dtype::F32));
            let (form_a, form_b) =
                if embedding { ("lora_embedding_A", "lora_embedding_B") } else { ("lora_A.weight", "lora_B.weight") };
            tensors.insert(format!("base_model.model.{module}.{form_a}"), stored(&a, Dtype::BF16));
            tensors.insert(format!("base_model.model.{module}.{form_b}"), stored(&b, Dtype::F32));
        }
        write(&base.path().join("model.safetensors"), &weights);
        Self { base, adapter, tensors, config: config.clone() }
    }

    fn open(&self) -> anemone_convert::Result<Source> {
        std::fs::write(self.adapter.path().join("adapter_config.json"), self.config.to_string()).unwrap();
        write(&self.adapter.path().join("adapter_model.safetensors"), &self.tensors);
        Source::open(self.base.path())?.with_lora(self.adapter.path())
    }

    fn error(&self) -> String {
        self.open().map(drop).unwrap_err().to_string()
    }
}

fn plain() -> Value {
    json!({ "peft_type": "LORA", "r": 4, "lora_alpha": 2, "bias": "none", "target_modules": ["q_proj", "down_proj"] })
}

const Q: &str = "base_model.model.model.layers.0.self_attn.q_proj";

#[test]
fn merged_models_answer_as_pytorch_did() {
    let everywhere = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];
    let config = json!({ "peft_type": "LORA", "r": 4, "lora_alpha": 2, "target_modules": everywhere });
    let case = Case::new("llama", &everywhere, &config, 0.5);
    answers_like(&case.open().unwrap(), "llama");
    // Without it the model is another one: the test can fail.
    let base = Source::open(case.base.path()).unwrap();
    let weight = |source: &Source| source.tensor("model.layers.0.self_attn.q_proj.weight").unwrap().decode();
    let far = weight(&base).iter().zip(weight(&case.open().unwrap())).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(far > 0.3, "{far}");
}

#[test]
fn rank_stabilized_ones_are_scaled_by_the_root() {
    let config = json!({ "peft_type": "LORA", "r": 4, "lora_alpha": 0.5, "use_rslora": true });
    answers_like(&Case::new("qwen2", &["q_proj", "v_proj"], &config, 0.25).open().unwrap(), "qwen2");
}

#[test]
fn projections_in_one_matrix_and_their_own_ranks() {
    let config = json!({
        "peft_type": "LORA", "r": 9, "lora_alpha": 1, "rank_pattern": { "qkv_proj": 4, "gate_up_proj": 4 },
        "alpha_pattern": { "qkv_proj": 2.0, "layers.0.mlp.gate_up_proj": 2.0 },
    });
    answers_like(&Case::new("phi3", &["qkv_proj", "gate_up_proj"], &config, 0.5).open().unwrap(), "phi3");
}

#[test]
fn embeddings_and_outputs_that_are_not_tied() {
    let config = json!({ "peft_type": "LORA", "r": 4, "lora_alpha": 1, "target_modules": ["embed_tokens", "lm_head"] });
    answers_like(&Case::new("olmo2", &["embed_tokens", "lm_head"], &config, 0.25).open().unwrap(), "olmo2");
    let tied = Case::new("llama", &["embed_tokens"], &config, 0.25).error();
    assert!(tied.contains("one matrix") && tied.contains("embed_tokens.lora_embedding_A"), "{tied}");
}

#[test]
fn what_does_not_belong_to_the_model_is_named() {
    let case = || Case::new("llama", &["q_proj", "down_proj"], &plain(), 0.5);
    case().open().unwrap();

    let mut other = case();
    let stray = drawn([4, 32], 7);
    other.tensors.insert(Q.replace("layers.0", "layers.99") + ".lora_A.weight", stored(&stray, Dtype::F32));
    let error = other.error();
    assert!(error.contains("layers.99.self_attn.q_proj.lora_A.weight") && error.contains("no matrix"), "{error}");

    let mut half = case();
    half.tensors.remove(&format!("{Q}.lora_B.weight"));
    let error = half.error();
    assert!(error.contains("model.layers.0.self_attn.q_proj") && error.contains("not its matrix B"), "{error}");

    let mut wrong = case();
    wrong.tensors.insert(format!("{Q}.lora_A.weight"), stored(&drawn([4, 31], 7), Dtype::F32));
    let error = wrong.error();
    assert!(error.contains("q_proj.lora_A.weight") && error.contains("[4, 31]; expected [4, 32]"), "{error}");

    let mut rank = case();
    rank.config["r"] = json!(8);
    assert!(rank.error().contains("expected [8, 32]"), "{}", rank.error());

    let mut nan = case();
    let mut matrix = drawn([4, 32], 7);
    matrix.values[5] = f64::NAN;
    nan.tensors.insert(format!("{Q}.lora_A.weight"), stored(&matrix, Dtype::F32));
    assert!(nan.error().contains("lora_A.weight\" holds NaN"), "{}", nan.error());

    let mut bias = case();
    bias.tensors.insert(format!("{Q}.lora_B.bias"), stored(&drawn([1, 384], 7), Dtype::F32));
    assert!(bias.error().contains("lora_B.bias"), "{}", bias.error());

    let mut norm = case();
    let module = "base_model.model.model.layers.0.input_layernorm";
    norm.tensors.insert(format!("{module}.lora_A.weight"), stored(&stray, Dtype::F32));
    assert!(norm.error().contains("input_layernorm"), "{}", norm.error());

    let mut missing = case();
    missing.config["target_modules"] = json!(["q_proj", "down_proj", "k_proj"]);
    assert!(missing.error().contains("target module \"k_proj\""), "{}", missing.error());

    let mut dora = case();
    dora.config["use_dora"] = json!(true);
    assert!(dora.error().contains("use_dora") && dora.error().contains("merge_and_unload"), "{}", dora.error());

    let nothing = case();
    std::fs::remove_file(nothing.adapter.path().join("adapter_config.json")).ok();
    let error = Source::open(nothing.base.path()).unwrap().with_lora(nothing.base.path()).map(drop).unwrap_err();
    assert!(error.to_string().contains("adapter_config.json"), "{error}");
}
