//! Good inputs to begin with: made here, or taken from the fixtures.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anemone_mil::text;
use anemone_package::{Package, bundle};
use anyhow::{Context, Result, bail};

use super::gguf::{Vocabulary, llama};
use super::{Shape, Target, mutate};

/// A chat template with what templates use.
pub(super) const TEMPLATE: &str = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}\
    {{ '<|im_start|>system\nYou are helpful.<|im_end|>\n' }}{% endif %}{{ '<|im_start|>' + message['role'] + '\n' + \
    message['content'] | trim + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}\
    {{ '<|im_start|>assistant\n' }}{% endif %}";

const MACROS: &str = "{%- macro say(m, n=2) -%}{{ m.content.split(' ')[::-1] | join('-') }}{%- endmacro -%}\n\
    {%- set ns = namespace(count=0) -%}{%- for m in messages -%}{%- set ns.count = ns.count + 1 -%}\
    {%- if m.role not in ['system', 'user', 'assistant'] -%}{{ raise_exception('no ' ~ m.role) }}{%- endif -%}\
    {{ say(m) }}{{ m | tojson(indent=2) }}{%- if ns.count > 3 -%}{%- break -%}{%- endif -%}{%- endfor -%}\n\
    {{ strftime_now('%d %b %Y') }}{% generation %}x{% endgeneration %}{{ range(5) | list | length }}";

/// Settings that `safetensors()` fits.
pub(super) const CONFIG: &str = r#"{
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": false, "mlp_bias": false,
  "bos_token_id": 1, "eos_token_id": [2, 0], "head_dim": 4, "hidden_act": "silu", "hidden_size": 8,
  "intermediate_size": 8, "max_position_embeddings": 64, "num_attention_heads": 2, "num_hidden_layers": 1,
  "num_key_value_heads": 1, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": true, "vocab_size": 16,
  "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
    "original_max_position_embeddings": 32, "rope_type": "llama3"},
  "torch_dtype": "bfloat16"
}"#;

/// The seeds of a target, each with a name.
pub fn seeds(target: &Target) -> Result<Vec<(String, Vec<u8>)>> {
    let named =
        |list: Vec<(&str, Vec<u8>)>| list.into_iter().map(|(name, content)| (name.to_owned(), content)).collect();
    Ok(match target.name {
        "manifest" => packages()?
            .into_iter()
            .map(|(name, path)| Ok((name, fs::read(path.join("Manifest.json"))?)))
            .collect::<Result<_>>()?,
        "blob" => blobs()?,
        "model" => models()?,
        "mil_text" => texts()?,
        "run" => cases(),
        // A recipe of chosen bytes is no better than one of any.
        "programs" => (0..64)
            .map(|round| (format!("recipe-{round}"), mutate::input("programs", Shape::Binary, &[], round)))
            .collect(),
        "gguf" => named(vec![
            ("bytes_q4", llama(Vocabulary::Bytes, true)),
            ("pieces_q8", llama(Vocabulary::Pieces, true)),
            ("pieces_f16", llama(Vocabulary::Pieces, false)),
            ("unigrams_q8", llama(Vocabulary::Unigrams, true)),
        ]),
        "safetensors" => named(vec![("llama", safetensors())]),
        "config" => named(vec![("llama", CONFIG.into())]),
        "index" => named(vec![("llama", index().into_bytes())]),
        "bundle" => named(vec![("tiny", fs::read(crate::fixtures::folder().join("model").join(bundle::MANIFEST))?)]),
        "tokenizer" => tokenizers()?,
        "template" => named(vec![("chatml", TEMPLATE.into()), ("macros", MACROS.into())]),
        other => bail!("the target {other} has no seeds: say in {} where they come from", file!()),
    })
}

/// The fixtures' packages that are small, by name.
fn packages() -> Result<Vec<(String, PathBuf)>> {
    let folder =
        std::env::var_os("ANEMONE_FIXTURES").map_or_else(|| crate::root().join("../shared/fixtures"), PathBuf::from);
    let listing = fs::read_dir(&folder);
    let listing =
        listing.with_context(|| format!("the fixtures are needed, in {} or in ANEMONE_FIXTURES", folder.display()))?;
    let mut found = Vec::new();
    for entry in listing {
        let entry = entry?;
        let package = entry.path().join("model.mlpackage");
        if package.is_dir() {
            found.push((entry.file_name().to_string_lossy().into_owned(), package));
        }
    }
    if found.is_empty() {
        bail!("{} holds no packages", folder.display());
    }
    found.push(("tiny".to_owned(), crate::fixtures::folder().join("model").join(bundle::PACKAGE)));
    found.sort();
    Ok(found)
}

fn models() -> Result<Vec<(String, Vec<u8>)>> {
    let mut seeds = Vec::new();
    // The others hold the same with other weights, and long ones are mutated less thoroughly.
    let telling = ["ios16_sparse", "ios16_affine_int8", "ios16_lut4", "tiny_guide_kv1_fp16", "zoo_sparse50_int8"];
    for (name, path) in packages()?.into_iter().filter(|(name, _)| telling.contains(&name.as_str())) {
        let data = path.join("Data/com.apple.CoreML");
        let (model, weights) = (fs::read(data.join("model.mlmodel"))?, fs::read(data.join("weights/weight.bin"))?);
        let mut seed = (model.len() as u32).to_le_bytes().to_vec();
        seed.extend_from_slice(&model);
        seed.extend_from_slice(&weights);
        seeds.push((name, seed));
    }
    Ok(seeds)
}

fn blobs() -> Result<Vec<(String, Vec<u8>)>> {
    let mut seeds = Vec::new();
    for (name, path) in packages()? {
        let weights = fs::read(path.join("Data/com.apple.CoreML/weights/weight.bin"))?;
        let mut seed = 64u64.to_le_bytes().to_vec();
        seed.extend_from_slice(&weights[..weights.len().min(4096)]);
        seeds.push((name, seed));
    }
    Ok(seeds)
}

const STATE: &str = r#"program(1.3)
[buildInfo = dict<string, string>({{"coremltools-version", "9.0"}})]
{
    func main<ios18>(tensor<fp16, [1, 2]> x, state<tensor<fp16, [2]>> total) {
        tensor<fp16, [2]> old = read_state(input = total)[name = string("old")];
        int32 axis = const()[name = string("axis"), val = int32(0)];
        tensor<fp16, [2]> w = const()[name = string("w"), val = tensor<fp16, [2]>([0x1p+0, -0x1.8p-1])];
        tensor<fp16, [1, 2]> y = mul(x = x, y = w)[name = string("y")];
        write_state(data = w, input = total)[name = string("old_write_state")];
    } -> (y);
}
"#;

/// Small programs as text.
fn cases() -> Vec<(String, Vec<u8>)> {
    let cases = super::programs::cases().into_iter().map(|(name, program)| (name, text::print(&program).into_bytes()));
    cases.chain([("state".to_owned(), STATE.into())]).collect()
}

/// Small programs as text, and pieces of large ones.
fn texts() -> Result<Vec<(String, Vec<u8>)>> {
    let mut seeds = cases();
    for (name, path) in
        packages()?.into_iter().filter(|(name, _)| name.starts_with("ios16") || name.starts_with("tiny_guide"))
    {
        let model = anemone_mil::decode(&Package::open(&path)?).with_context(|| format!("the fixture {name}"))?;
        // Blobs are not to be had when the text is parsed; what does not need them is kept.
        let text = text::print(&model.program);
        let text: Vec<&str> =
            text.lines().filter(|line| !line.contains("BLOBFILE") && line.len() < 2000).take(120).collect();
        seeds.push((name, text.join("\n").into_bytes()));
    }
    Ok(seeds)
}

/// Tokenizers as they are rebuilt from the GGUF seeds.
fn tokenizers() -> Result<Vec<(String, Vec<u8>)>> {
    let mut seeds = Vec::new();
    for (name, kind) in
        [("bytes", Vocabulary::Bytes), ("pieces", Vocabulary::Pieces), ("unigrams", Vocabulary::Unigrams)]
    {
        let file = anemone_convert::source::gguf::Gguf::parse(llama(kind, true).into());
        let source = file.and_then(anemone_convert::Source::from_gguf).with_context(|| format!("the seed {name}"))?;
        let files = source.tokenizer().with_context(|| format!("the seed {name}"))?;
        seeds.push((name.to_owned(), files.json.into_bytes()));
    }
    let tiny = crate::fixtures::folder().join("model").join(bundle::TOKENIZER);
    seeds.push(("tiny".to_owned(), fs::read(tiny)?));
    Ok(seeds)
}

/// The file that `index()` names for every tensor.
pub(super) const SHARD: &str = "model-00001-of-00001.safetensors";

/// The index of the tensors of `safetensors()`.
fn index() -> String {
    let file = safetensors();
    let tensors = safetensors::SafeTensors::deserialize(&file).expect("it was written well");
    let map: BTreeMap<&str, &str> = tensors.names().into_iter().map(|name| (name, SHARD)).collect();
    serde_json::json!({"metadata": {"total_size": file.len()}, "weight_map": map}).to_string()
}

/// The weights of `CONFIG`'s model.
pub(super) fn safetensors() -> Vec<u8> {
    let layer = [
        ("input_layernorm", &[8][..]),
        ("self_attn.q_proj", &[8, 8]),
        ("self_attn.k_proj", &[4, 8]),
        ("self_attn.v_proj", &[4, 8]),
        ("self_attn.o_proj", &[8, 8]),
        ("post_attention_layernorm", &[8]),
        ("mlp.gate_proj", &[8, 8]),
        ("mlp.up_proj", &[8, 8]),
        ("mlp.down_proj", &[8, 8]),
    ];
    let outer = [("model.embed_tokens".to_owned(), &[16, 8][..]), ("model.norm".to_owned(), &[8])];
    let inner = layer.map(|(name, shape)| (format!("model.layers.0.{name}"), shape));
    let mut header = serde_json::Map::new();
    header.insert("__metadata__".into(), serde_json::json!({"format": "pt"}));
    let mut at = 0;
    for (index, (name, shape)) in outer.into_iter().chain(inner).enumerate() {
        let (dtype, size) = [("BF16", 2), ("F16", 2), ("F32", 4)][index % 3];
        let end = at + shape.iter().product::<usize>() * size;
        let entry = serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": [at, end]});
        header.insert(format!("{name}.weight"), entry);
        at = end;
    }
    let mut text = serde_json::Value::Object(header).to_string();
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    let mut file = (text.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(text.as_bytes());
    file.extend((0..at).map(|byte| (byte % 59) as u8));
    file
}

#[cfg(test)]
mod tests {
    use anemone_convert::Source;
    use anemone_convert::source::gguf::Gguf;

    use super::*;

    #[test]
    fn seeds_are_good_inputs() {
        for kind in [Vocabulary::Bytes, Vocabulary::Pieces, Vocabulary::Unigrams] {
            for quantized in [false, true] {
                let source = Source::from_gguf(Gguf::parse(llama(kind, quantized).into()).unwrap()).unwrap();
                anemone::Tokenizer::from_bytes(source.tokenizer().unwrap().json.as_bytes()).unwrap();
            }
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config.json"), CONFIG).unwrap();
        fs::write(folder.path().join("model.safetensors"), safetensors()).unwrap();
        Source::open(folder.path()).unwrap();
        for template in [TEMPLATE, MACROS] {
            let messages = [anemone::Message::user("Hi you")];
            anemone::ChatTemplate::new(template).unwrap().render(&messages, &Default::default()).unwrap();
        }
        for target in super::super::TARGETS {
            assert!(!seeds(target).unwrap().is_empty(), "{}", target.name);
        }
    }
}
