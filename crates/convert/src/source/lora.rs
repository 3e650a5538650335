//! LoRA adapters in the form of Hugging Face's PEFT: a folder with `adapter_config.json` and `adapter_model.safetensors`.
//!
//! A module's weight `W` (outputs, inputs) becomes `W + scale · B · A`, with `A` (rank, inputs), `B` (outputs, rank) and the
//! scale `alpha / rank`, or `alpha / √rank` where the adapter is rank-stabilized (`use_rslora`); an embedding's is
//! `W + scale · (B · A)ᵀ`, as `get_delta_weight` of PEFT's layers has it. What else an adapter may do to a model is refused.

mod settings;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anemone_package::map_file;
use safetensors::{Dtype, SafeTensors};

use self::settings::Settings;
use super::lookup::{EMBEDDING, OUTPUT};
use super::{MAX_PROBLEMS, Source};
use crate::dequantize::{self, Kind};
use crate::error::{ConvertError, Result};

const WEIGHTS: &str = "adapter_model.safetensors";
/// The most elements of one of an adapter's matrices.
const MAX_ELEMENTS: usize = 1 << 30;

/// What an adapter adds to one matrix.
#[derive(Debug)]
pub(crate) struct LowRank {
    columns: usize,
    rank: usize,
    /// (rank, columns).
    a: Vec<f32>,
    /// (rows, rank), multiplied by the scale.
    b: Vec<f32>,
}

impl LowRank {
    /// Adds its row `row` to a row of the matrix.
    pub(crate) fn add(&self, row: usize, out: &mut [f32]) {
        let b = &self.b[row * self.rank..(row + 1) * self.rank];
        for (&b, a) in b.iter().zip(self.a.chunks_exact(self.columns.max(1))) {
            out.iter_mut().zip(a).for_each(|(out, a)| *out += b * a);
        }
    }
}

/// An adapter, read and checked against its model.
#[derive(Debug)]
pub(crate) struct Lora {
    file: PathBuf,
    changes: HashMap<String, Arc<LowRank>>,
    about: String,
}

impl Lora {
    /// What it adds to the tensor of this Hugging Face name.
    pub(crate) fn of(&self, name: &str) -> Option<&Arc<LowRank>> {
        self.changes.get(name)
    }

    /// The file of its weights.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// What it is, for people.
    pub(crate) fn about(&self) -> &str {
        &self.about
    }

    /// Reads the adapter in `folder`, which is for the model of `source`.
    pub(crate) fn read(folder: &Path, source: &Source) -> Result<Self> {
        let settings = Settings::read(folder)?;
        let file = folder.join(WEIGHTS);
        if !file.is_file() {
            let problem = format!("there is no {WEIGHTS} in the folder of the adapter");
            return Err(ConvertError::Malformed { path: folder.to_owned(), problem });
        }
        let bytes = map_file(&file).map_err(|e| ConvertError::io(&file, "map", e))?;
        let wrong = |e: safetensors::SafeTensorError| {
            ConvertError::malformed(&file, format!("not a whole safetensors file: {e}; copy or download it again"))
        };
        let tensors = SafeTensors::deserialize(&bytes).map_err(wrong)?;
        let (pairs, mut problems) = pairs(&tensors, source);
        let mut changes = HashMap::new();
        let mut ranks = BTreeSet::new();
        for (module, pair) in &pairs {
            match pair.merged(module, &settings, source) {
                Ok(change) => {
                    ranks.insert(change.rank);
                    changes.insert(format!("{module}.weight"), Arc::new(change));
                }
                Err(problem) => problems.push(problem),
            }
        }
        for target in settings.targets() {
            let is_it = |module: &String| settings::names(target, module);
            if !pairs.keys().any(is_it) {
                problems.push(format!("the adapter has no tensors of its target module {target:?}"));
            }
        }
        if changes.is_empty() && problems.is_empty() {
            problems.push("the adapter has no tensors".to_owned());
        }
        if !problems.is_empty() {
            let more = problems.len().saturating_sub(MAX_PROBLEMS);
            problems.truncate(MAX_PROBLEMS);
            problems.extend((more > 0).then(|| format!("and {more} more")));
            return Err(ConvertError::Tensors { path: file, problems });
        }
        let ranks: Vec<String> = ranks.iter().map(ToString::to_string).collect();
        let about = format!(
            "the adapter {} is merged into {} {}: rank {}, {}",
            folder.file_name().map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned()),
            changes.len(),
            if changes.len() == 1 { "matrix" } else { "matrices" },
            ranks.join(" and "),
            settings.scale_in_words()
        );
        Ok(Self { file, changes, about })
    }
}

/// The two matrices of a module.
#[derive(Default)]
struct Pair<'t> {
    a: Option<(&'t str, safetensors::tensor::TensorView<'t>)>,
    b: Option<(&'t str, safetensors::tensor::TensorView<'t>)>,
    /// Whether they are an embedding's, whose product is transposed.
    embedding: bool,
}

/// The pairs of a file by module, and the tensors that belong to none.
fn pairs<'t>(tensors: &'t SafeTensors<'t>, source: &Source) -> (BTreeMap<String, Pair<'t>>, Vec<String>) {
    let mut pairs: BTreeMap<String, Pair<'t>> = BTreeMap::new();
    let mut problems = Vec::new();
    let mut names = tensors.names();
    names.sort_unstable();
    for name in names {
        let Ok(view) = tensors.tensor(name) else { continue };
        let Some((module, first, embedding)) = split(name) else {
            problems.push(format!("tensor {name:?}: expected base_model.model.….lora_A.weight or lora_B.weight"));
            continue;
        };
        if let Err(problem) = belongs(&module, embedding, source) {
            problems.push(format!("tensor {name:?}: {problem}"));
            continue;
        }
        let pair = pairs.entry(module).or_default();
        pair.embedding = embedding;
        let place = if first { &mut pair.a } else { &mut pair.b };
        if let Some((other, _)) = place {
            problems.push(format!("tensors {other:?} and {name:?} are of one module"));
        }
        *place = Some((name, view));
    }
    (pairs, problems)
}

/// The module of a tensor as the converter calls it, whether it is `A`, and whether it is an embedding's.
fn split(name: &str) -> Option<(String, bool, bool)> {
    let inner = name.strip_prefix("base_model.model.")?;
    let forms = [
        ("lora_A", true, false),
        ("lora_B", false, false),
        ("lora_embedding_A", true, true),
        ("lora_embedding_B", false, true),
    ];
    for (form, first, embedding) in forms {
        let Some((module, rest)) = inner.split_once(&format!(".{form}")) else { continue };
        // The adapter's name may stand between, and an embedding's are parameters, not modules.
        let rest = rest.strip_prefix('.').unwrap_or(rest);
        let plain = if embedding {
            !rest.contains('.')
        } else {
            rest == "weight" || rest.strip_suffix(".weight").is_some_and(|adapter| !adapter.contains('.'))
        };
        if plain {
            let module = match module.strip_prefix("model.language_model.") {
                Some(rest) => format!("model.{rest}"),
                None => module.strip_prefix("language_model.").unwrap_or(module).to_owned(),
            };
            return Some((module, first, embedding));
        }
    }
    None
}

/// Whether the model has a matrix of that module that an adapter can be merged into.
fn belongs(module: &str, embedding: bool, source: &Source) -> std::result::Result<(), String> {
    let name = format!("{module}.weight");
    let config = source.config();
    if config.tie_embeddings && (name == EMBEDDING || name == OUTPUT) {
        return Err("the model's output and embedding are one matrix; what changes one of them cannot be merged".into());
    }
    let all = (config.family.tensors)(config);
    let plain = all.iter().any(|(known, shape)| *known == name && shape.len() == 2);
    let fused = || {
        let stem = |part: &str, whole: &str| all.iter().any(|(known, _)| known.replace(part, whole) == name);
        config.family.fused.iter().any(|fused| fused.parts.first().is_some_and(|part| stem(part, fused.name)))
    };
    if !(plain || fused()) || !source.has_tensor(&name) {
        return Err(format!("the model has no matrix {name:?}"));
    }
    if embedding != (name == EMBEDDING) {
        return Err("lora_embedding_A and _B are for embeddings, lora_A and _B for linear layers".into());
    }
    Ok(())
}

impl Pair<'_> {
    /// The change, ready to be added.
    fn merged(&self, module: &str, settings: &Settings, source: &Source) -> std::result::Result<LowRank, String> {
        let (Some((a_name, a)), Some((b_name, b))) = (&self.a, &self.b) else {
            let (found, missing) = if self.a.is_some() { ("A", "B") } else { ("B", "A") };
            return Err(format!("module {module:?} has its matrix {found} and not its matrix {missing}"));
        };
        let tensor = source.tensor(&format!("{module}.weight")).map_err(|error| error.to_string())?;
        let (outputs, inputs) = (tensor.rows(), tensor.row_len());
        let rank = settings.rank(module);
        let shape = |name: &str, found: &[usize], expected: [usize; 2]| {
            if found == expected {
                Ok(())
            } else {
                Err(format!("tensor {name:?} has the shape {found:?}; expected {expected:?}"))
            }
        };
        let (wide, high) = if self.embedding { (outputs, inputs) } else { (inputs, outputs) };
        shape(a_name, a.shape(), [rank, wide])?;
        shape(b_name, b.shape(), [high, rank])?;
        let (mut a, mut b) = (floats(a_name, a)?, floats(b_name, b)?);
        if self.embedding {
            (a, b) = (transposed(&b, high, rank), transposed(&a, rank, wide));
        }
        let scale = settings.scale(module);
        b.iter_mut().for_each(|b| *b = (f64::from(*b) * scale) as f32);
        Ok(LowRank { columns: inputs, rank, a, b })
    }
}

fn floats(name: &str, view: &safetensors::tensor::TensorView<'_>) -> std::result::Result<Vec<f32>, String> {
    let kind: &'static Kind = match view.dtype() {
        Dtype::F32 => &dequantize::F32,
        Dtype::F16 => &dequantize::F16,
        Dtype::BF16 => &dequantize::BF16,
        other => return Err(format!("tensor {name:?} is of type {other:?}; supported: F32, F16, BF16")),
    };
    let n: usize = view.shape().iter().product();
    if n > MAX_ELEMENTS {
        return Err(format!("tensor {name:?} has {n} elements; at most {MAX_ELEMENTS} are read"));
    }
    let mut values = vec![0.0; n];
    kind.decode(view.data(), 0..n, &mut values);
    match values.iter().find(|v| !v.is_finite()) {
        None => Ok(values),
        Some(value) => Err(format!("tensor {name:?} holds {value}")),
    }
}

/// (rows, columns) as (columns, rows).
fn transposed(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|c| (0..rows).map(move |r| values[r * columns + c])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let q = "base_model.model.model.layers.0.self_attn.q_proj";
        let module = "model.layers.0.self_attn.q_proj".to_owned();
        assert_eq!(split(&format!("{q}.lora_A.weight")), Some((module.clone(), true, false)));
        assert_eq!(split(&format!("{q}.lora_B.default.weight")), Some((module, false, false)));
        let embedding = ("model.embed_tokens".to_owned(), true, true);
        assert_eq!(split("base_model.model.model.embed_tokens.lora_embedding_A"), Some(embedding.clone()));
        assert_eq!(split("base_model.model.model.embed_tokens.lora_embedding_A.default"), Some(embedding));
        let seeing = split("base_model.model.model.language_model.layers.1.mlp.up_proj.lora_A.weight");
        assert_eq!(seeing, Some(("model.layers.1.mlp.up_proj".to_owned(), true, false)));
        for other in ["lora_A.weight", "model.layers.0.q_proj.lora_A.weight"] {
            assert_eq!(split(other), None, "{other}");
        }
        for other in ["lora_B.bias", "lora_magnitude_vector.weight", "weight", "lora_A.a.b.weight"] {
            assert_eq!(split(&format!("{q}.{other}")), None, "{other}");
        }
    }

    #[test]
    fn rows_are_added() {
        let low = LowRank { columns: 3, rank: 2, a: vec![1.0, 2.0, 3.0, 0.0, 1.0, 0.0], b: vec![0.5, 0.0, 1.0, -1.0] };
        let mut row = [1.0; 3];
        low.add(1, &mut row);
        assert_eq!(row, [2.0, 2.0, 4.0]);
        assert_eq!(transposed(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }
}
