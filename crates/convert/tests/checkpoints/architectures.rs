//! A tiny model of each architecture, converted from a Hugging Face folder and from a GGUF file, against the logits that
//! PyTorch gives (`goldens/archs`, made by `xtask/check/architectures.py`).

mod gguf;
mod run;

use std::path::{Path, PathBuf};

use anemone_convert::lint::{Os, Profile};
use anemone_convert::source::family::{Activation, FAMILIES, QkNorm};
use anemone_convert::{Conversion, Options, SCHEMES, Source, Watch};
use half::f16;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde_json::json;

use self::run::Model;
use crate::support::GgufBuilder;

/// Positions of the cache: more than the models' windows, and than the context that `phi3_long` was made for first.
const CONTEXT: usize = 64;
const PREFILL: usize = 16;
/// How far a logit may be from PyTorch's, in deviations of the logits: weights are the same half floats, and so is what
/// rounds keys, values, and the tables of rotations.
const TOLERANCE: f32 = 0.015;

/// The folder of a golden.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../goldens/archs").join(name)
}

/// A golden as a GGUF file.
pub(crate) fn gguf_of(name: &str) -> GgufBuilder {
    gguf::of_folder(&folder(name))
}

/// Tokens, and the logits after each, a row of the vocabulary's size.
struct Golden {
    tokens: Vec<i32>,
    logits: Vec<Vec<f32>>,
}

impl Golden {
    fn read(name: &str, prefix: &str) -> Self {
        let bytes = std::fs::read(folder(name).join("golden.safetensors")).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let (tokens, logits) =
            (file.tensor(&format!("{prefix}tokens")).unwrap(), file.tensor(&format!("{prefix}logits")).unwrap());
        let floats: Vec<f32> = logits.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        Self {
            tokens: tokens.data().as_chunks().0.iter().map(|b| i32::from_le_bytes(*b)).collect(),
            logits: floats.chunks(logits.shape()[1]).map(<[f32]>::to_vec).collect(),
        }
    }
}

fn deviation(logits: &[Vec<f32>]) -> f32 {
    let all = logits.concat();
    let mean = all.iter().sum::<f32>() / all.len() as f32;
    (all.iter().map(|l| (l - mean).powi(2)).sum::<f32>() / all.len() as f32).sqrt()
}

fn convert(source: &Source, context: usize, profile: Profile) -> Model {
    let dest = tempfile::tempdir().unwrap();
    let options = Options { context: Some(context), prefill: Some(PREFILL), profile, ..Options::default() };
    Conversion::new(source, &options).unwrap().run(dest.path(), &Watch::default()).unwrap();
    Model::open(dest.path(), PREFILL)
}

/// How far the logits behind each of the pieces are from the golden at most, in deviations, and the position.
fn worst(model: &Model, golden: &Golden, pieces: &[usize]) -> (f32, usize) {
    let (unit, mut position, mut worst) = (deviation(&golden.logits), 0, (0.0, 0));
    for (piece, logits) in pieces.iter().zip(model.feed(&golden.tokens, pieces)) {
        position += piece;
        let expected = &golden.logits[position - 1];
        assert_eq!(logits.len(), expected.len());
        let off = logits.iter().zip(expected).map(|(a, b)| (a - b).abs() / unit).fold(0.0, f32::max);
        if off > worst.0 || logits.iter().any(|l| l.is_nan()) {
            worst = (off, position - 1);
        }
    }
    worst
}

/// Converts, and compares every position by `decode`, and the last of every piece by `prefill` and both in turns.
#[track_caller]
fn same_as_pytorch(source: &Source, name: &str, golden: &Golden, context: usize, profile: Profile) {
    let model = convert(source, context, profile);
    let n = golden.tokens.len();
    let mut uneven = vec![5, PREFILL - 5];
    uneven.extend((PREFILL..n).step_by(PREFILL).map(|start| PREFILL.min(n - start)));
    for pieces in [vec![1; n], uneven, [vec![PREFILL], vec![1; n - PREFILL]].concat()] {
        let (off, position) = worst(&model, golden, &pieces);
        assert!(off <= TOLERANCE, "{name}: off by {off} deviations at position {position}, in pieces of {pieces:?}");
    }
}

/// The model answers as the golden `name` does.
#[track_caller]
pub(crate) fn answers_like(source: &Source, name: &str) {
    same_as_pytorch(source, name, &Golden::read(name, ""), CONTEXT, Profile::Portable);
}

#[track_caller]
fn from_folder(name: &str) {
    let source = Source::open(folder(name)).unwrap();
    same_as_pytorch(&source, name, &Golden::read(name, ""), CONTEXT, Profile::Portable);
}

/// As the Neural Engine takes it, in which the linter finds nothing.
#[track_caller]
fn for_the_neural_engine(name: &str) {
    let source = Source::open(folder(name)).unwrap();
    let options = Options { context: Some(CONTEXT), prefill: Some(32), profile: Profile::Ane, ..Options::default() };
    let findings = Conversion::new(&source, &options).unwrap().lint(Os::Ios18).unwrap();
    // The vocabularies of the goldens are no multiples of 32.
    let findings = findings.iter().filter(|finding| finding.rule.id != "input-alignment");
    let found: Vec<String> = findings.map(|f| format!("{} {}: {}", f.rule.id, f.place, f.message)).collect();
    assert!(found.is_empty(), "{name}: {found:#?}");
    same_as_pytorch(&source, &format!("{name} channels first"), &Golden::read(name, ""), CONTEXT, Profile::Ane);
}

#[track_caller]
fn from_gguf(name: &str) {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("model.gguf");
    std::fs::write(&path, gguf_of(name).build()).unwrap();
    let source = Source::open(&path).unwrap();
    same_as_pytorch(&source, &format!("{name} from GGUF"), &Golden::read(name, ""), CONTEXT, Profile::Portable);
}

macro_rules! cases {
    ($($name:ident $(in $form:ident)?;)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(mod $name {
            #[test]
            fn folder() {
                super::from_folder(stringify!($name));
            }
            #[test]
            fn ane() {
                super::for_the_neural_engine(stringify!($name));
            }
            cases!(@gguf $name $($form)?);
        })*
    };
    (@gguf $name:ident folder_only) => {};
    (@gguf $name:ident) => {
        #[test]
        fn gguf() {
            super::from_gguf(stringify!($name));
        }
    };
}

cases! {
    llama;
    llama_biased;
    mistral;
    smollm3;
    qwen2;
    // llama.cpp knows no window of Qwen 2, nor another scale of Gemma 2 than its head size.
    qwen2_sliding in folder_only;
    qwen3;
    qwen3_tied;
    gemma2;
    gemma2_scaled in folder_only;
    gemma3;
    phi3;
    phi3_long;
    olmo2;
    olmo2_grouped;
}

/// The furthest that any logit of `found` is from `expected`, in deviations of the latter.
fn furthest(found: &[Vec<f32>], expected: &[Vec<f32>]) -> f32 {
    let unit = deviation(expected);
    let off = |(a, b): (&Vec<f32>, &Vec<f32>)| a.iter().zip(b).map(|(a, b)| (a - b).abs() / unit).fold(0.0, f32::max);
    assert!(found.iter().flatten().all(|l| l.is_finite()));
    found.iter().zip(expected).map(off).fold(0.0, f32::max)
}

/// On hardware that rounds every result to half floats, too.
#[test]
fn in_half_floats() {
    // One more than the windows.
    let count = 9;
    for name in NAMES {
        let golden = Golden::read(name, "");
        let (logits, overflows) = convert(&Source::open(folder(name)).unwrap(), CONTEXT, Profile::Portable)
            .feed_half(&golden.tokens[..count]);
        assert_eq!(overflows, [""; 0], "{name}");
        let off = furthest(&logits, &golden.logits[..count]);
        assert!(off <= 4.0 * TOLERANCE, "{name}: off by {off} deviations");
    }
}

/// What Gemma's layers add up to is too much for half floats; it is kept at a fraction.
#[test]
fn sums_beyond_half_floats() {
    for name in ["gemma2", "gemma3"] {
        let grow = |name: &str, value: f32| {
            if name.contains("layernorm") && name.contains("post_") { 20_000.0 * (1.0 + value) - 1.0 } else { value }
        };
        let temporary = changed(name, grow);
        let model = convert(&Source::open(temporary.path()).unwrap(), CONTEXT, Profile::Portable);
        let tokens = &Golden::read(name, "").tokens[..8];
        let (halves, overflows) = model.feed_half(tokens);
        assert_eq!(overflows, [""; 0], "{name}");
        let off = furthest(&halves, &model.feed(tokens, &[1; 8]));
        assert!(off <= 4.0 * TOLERANCE, "{name}: off by {off} deviations");
    }
}

/// A golden whose weights are changed.
fn changed(name: &str, change: impl Fn(&str, f32) -> f32) -> tempfile::TempDir {
    let temporary = tempfile::tempdir().unwrap();
    std::fs::copy(folder(name).join("config.json"), temporary.path().join("config.json")).unwrap();
    let bytes = std::fs::read(folder(name).join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let encode = |name: &str, data: &[u8]| -> Vec<u8> {
        let floats = data.as_chunks().0.iter().map(|b| change(name, f16::from_le_bytes(*b).to_f32()));
        floats.flat_map(f32::to_le_bytes).collect()
    };
    let tensors: Vec<_> = file
        .tensors()
        .into_iter()
        .map(|(name, view)| (encode(&name, view.data()), name, view.shape().to_vec()))
        .collect();
    let views = tensors.iter().map(|(d, n, s)| (n.as_str(), TensorView::new(Dtype::F32, s.clone(), d).unwrap()));
    std::fs::write(temporary.path().join("model.safetensors"), safetensors::serialize(views, None).unwrap()).unwrap();
    temporary
}

#[test]
fn in_short_contexts_longrope_is_another() {
    let source = Source::open(folder("phi3_long")).unwrap();
    same_as_pytorch(&source, "phi3_long in short", &Golden::read("phi3_long", "short."), 32, Profile::Portable);
}

#[test]
fn every_family_has_a_golden_and_every_golden_a_test() {
    let families: Vec<&str> =
        NAMES.iter().map(|name| Source::open(folder(name)).unwrap().architecture().name).collect();
    for family in FAMILIES {
        assert!(families.contains(&family.name), "there is no golden of {}", family.name);
    }
    for entry in std::fs::read_dir(folder("")).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(NAMES.iter().any(|n| *n == name), "{name:?} is not tested");
    }
}

/// What the goldens must span, so that a later one does not narrow it.
#[test]
fn the_goldens_span_heads_and_ties() {
    let configs: Vec<_> = NAMES.iter().map(|name| Source::open(folder(name)).unwrap().config().clone()).collect();
    for ratio in [1, 3, 4, 8] {
        assert!(configs.iter().any(|c| c.heads / c.kv_heads == ratio), "{ratio} query heads share a key");
    }
    for size in [64, 80, 96, 128, 256] {
        assert!(configs.iter().any(|c| c.head_dim == size), "heads of {size}");
    }
    for tied in [true, false] {
        assert!(configs.iter().any(|c| c.tie_embeddings == tied), "tied: {tied}");
    }
    let windowed = |c: &anemone_convert::source::config::Config| (0..c.layers).filter_map(|i| c.window(i)).max();
    assert!(configs.iter().filter_map(windowed).count() >= 5, "windows");
    assert!(configs.iter().filter_map(windowed).all(|window| window < PREFILL), "the sequences pass every window");
}

/// Each setting matters to the goldens: without it, the logits are far off. So a builder that forgot it would be found.
#[test]
fn the_goldens_notice_every_peculiarity() {
    let unscaled = json!({"rope_scaling": null});
    for (name, change) in [
        ("llama", unscaled.clone()),
        ("mistral", json!({"sliding_window": null})),
        ("smollm3", json!({"no_rope_layers": [1, 1, 1, 1]})),
        ("qwen2_sliding", json!({"max_window_layers": 0})),
        ("gemma2", json!({"attn_logit_softcapping": null})),
        ("gemma2", json!({"final_logit_softcapping": null})),
        ("gemma2", json!({"layer_types": ["full_attention", "sliding_attention"]})),
        ("gemma2_scaled", json!({"query_pre_attn_scalar": 64})),
        ("gemma3", json!({"rope_local_base_freq": 1e6})),
        ("gemma3", json!({"sliding_window": 9})),
        ("gemma3", unscaled.clone()),
        ("phi3_long", unscaled),
        ("phi3_long", json!({"original_max_position_embeddings": 128})),
        ("phi3", json!({"sliding_window": 9})),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let read = |file: &str| std::fs::read(folder(name).join(file)).unwrap();
        let mut config: serde_json::Value = serde_json::from_slice(&read("config.json")).unwrap();
        config.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        std::fs::write(temporary.path().join("config.json"), config.to_string()).unwrap();
        std::fs::write(temporary.path().join("model.safetensors"), read("model.safetensors")).unwrap();
        let golden = Golden::read(name, "");
        let model = convert(&Source::open(temporary.path()).unwrap(), CONTEXT, Profile::Portable);
        let (off, _) = worst(&model, &golden, &vec![1; golden.tokens.len()]);
        assert!(off > 2.0 * TOLERANCE, "{name} with {change}: off by {off} deviations only");
    }
}

/// The runtime computes attention, norms and gates of every architecture in one step each. (Attention with soft caps is not,
/// for now.)
#[test]
fn what_the_runtime_does_in_one_step() {
    for name in NAMES {
        let source = Source::open(folder(name)).unwrap();
        let (config, layer) = (source.config(), &source.architecture().layer);
        let norms = [layer.before_attention, layer.after_attention, layer.before_mlp, layer.after_mlp];
        let of_qk = if layer.qk_norm == QkNorm::None { 0 } else { 2 };
        let expected_norms = 1 + config.layers * (norms.iter().flatten().count() + of_qk);
        for steps in convert(&source, CONTEXT, Profile::Portable).steps() {
            let count = |kind: &str| steps.get(kind).copied().unwrap_or(0);
            assert_eq!(count("rms_norm"), expected_norms, "{name}: {steps:?}");
            if config.attention_softcap.is_none() {
                assert_eq!((count("attention"), count("matmul")), (config.layers, 0), "{name}: {steps:?}");
            }
            if layer.activation == Activation::Silu {
                let gates = count("gated_silu") + count("gated_projection");
                assert_eq!((gates, count("silu")), (config.layers, 0), "{name}: {steps:?}");
            }
        }
    }
}

/// Parts of stored tensors and norms that are stored otherwise are no hindrance to any form of weights; each conversion
/// compares what it wrote with the source.
#[test]
fn in_every_form_of_weights() {
    for name in ["phi3_long", "gemma2_scaled", "llama_biased"] {
        let source = Source::open(folder(name)).unwrap();
        for weights in SCHEMES {
            let dest = tempfile::tempdir().unwrap();
            let usual = Options { context: Some(CONTEXT), prefill: Some(PREFILL), ..Options::default() };
            let options = Options { weights, ..usual };
            Conversion::new(&source, &options).unwrap().run(dest.path(), &Watch::default()).unwrap();
            let tokens = Golden::read(name, "").tokens;
            let logits = Model::open(dest.path(), PREFILL).feed(&tokens[..PREFILL], &[PREFILL]);
            assert!(logits[0].iter().all(|l| l.is_finite()), "{name} {}", weights.name);
        }
    }
}
