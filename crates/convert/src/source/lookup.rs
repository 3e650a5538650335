//! Finding tensors by their canonical names, whatever the files call them and however they store them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use super::gguf::{Gguf, TensorInfo};
use super::safetensors::Folder;
use super::{MAX_PROBLEMS, Source, Store, family, undecodable};
use crate::error::{ConvertError, Result};
use crate::source::Tensor;

/// The embedding, which an output projection may be tied to.
pub(super) const EMBEDDING: &str = "model.embed_tokens.weight";
pub(super) const OUTPUT: &str = "lm_head.weight";

impl Source {
    /// Whether there is a tensor of this Hugging Face name, by itself or as a part of another.
    pub fn has_tensor(&self, name: &str) -> bool {
        self.is_stored(name) || self.fused(name).is_some()
    }

    /// The tensor of this Hugging Face name, its rows in Hugging Face's order. `lm_head.weight` is the embedding if the
    /// two are tied. Parts of a tensor that holds several have their own names, and norms are what is multiplied by, the
    /// [scale of the residual](crate::source::config::Config::residual_scale) included.
    ///
    /// # Errors
    /// [`ConvertError::Tensors`] if it is absent, [`ConvertError::UnsupportedType`] if it cannot be decoded.
    pub fn tensor(&self, name: &str) -> Result<Tensor> {
        let wanted = if name == OUTPUT && self.config.tie_embeddings { EMBEDDING } else { name };
        let found = match self.stored(wanted)? {
            Some(tensor) => Some(tensor),
            None => self.part(wanted)?,
        };
        found.ok_or_else(|| ConvertError::Tensors {
            path: self.path.clone(),
            problems: vec![format!("there is no tensor {wanted:?}")],
        })
    }

    /// Whether the files have a tensor of this very name.
    fn is_stored(&self, name: &str) -> bool {
        match &self.store {
            Store::Gguf { names, .. } => names.contains_key(name),
            Store::Folder(folder) => folder_name(folder, name).is_some(),
        }
    }

    fn stored(&self, name: &str) -> Result<Option<Tensor>> {
        let tensor = self.in_file(name)?;
        let shape = &self.config.family.layer;
        let adds = |norm: &Option<&str>| {
            norm.is_some_and(|norm| name.strip_suffix(".weight").is_some_and(|stem| stem.ends_with(norm)))
        };
        match self.config.residual_scale {
            scale if scale != 1.0 && [shape.after_attention, shape.after_mlp].iter().any(adds) => {
                Ok(tensor.map(|tensor| tensor.with_scale(scale as f32)))
            }
            _ => Ok(tensor),
        }
    }

    fn in_file(&self, name: &str) -> Result<Option<Tensor>> {
        let tensor = match &self.store {
            Store::Folder(folder) => {
                let stored = folder_name(folder, name).unwrap_or(Cow::Borrowed(name));
                let tensor = folder.tensor(&stored)?.map(|tensor| tensor.with_name(name));
                let from_one = self.config.family.norms_from_one && name.ends_with("norm.weight");
                Ok(if from_one { tensor.map(|tensor| tensor.with_added(1.0)) } else { tensor })
            }
            Store::Gguf { file, names } => {
                let info = names.get(name).and_then(|name| file.tensors().get(name));
                info.map(|info| self.gguf_tensor(file, name, info)).transpose()
            }
        };
        Ok(tensor?.map(|tensor| self.adapted(tensor)))
    }

    /// With what an adapter adds to the tensor of that name.
    fn adapted(&self, tensor: Tensor) -> Tensor {
        match self.lora.as_ref().and_then(|lora| lora.of(tensor.name())) {
            Some(change) => tensor.with_adapter(change.clone()),
            None => tensor,
        }
    }

    /// The tensor that holds `name` among others, and its rows there.
    fn fused(&self, name: &str) -> Option<(String, Range<usize>)> {
        for fused in self.config.family.fused {
            let mut start = 0;
            for part in fused.parts {
                let rows = family::projection_rows(&self.config, part);
                if let Some((before, after)) = name.split_once(part) {
                    let whole = format!("{before}{}{after}", fused.name);
                    return self.is_stored(&whole).then_some((whole, start..start + rows));
                }
                start += rows;
            }
        }
        None
    }

    /// The part of a tensor that is called `name`. A tensor of too few rows has none.
    fn part(&self, name: &str) -> Result<Option<Tensor>> {
        let Some((whole, rows)) = self.fused(name) else { return Ok(None) };
        let part = self.stored(&whole)?.and_then(|whole| whole.of_rows(rows));
        Ok(part.map(|part| self.adapted(part.with_name(name))))
    }

    fn gguf_tensor(&self, file: &Gguf, name: &str, info: &TensorInfo) -> Result<Tensor> {
        let (kind, bytes) = info.data.as_ref().ok_or_else(|| undecodable(file.path(), info))?;
        let tensor = Tensor::new(name.to_owned(), info.shape.clone(), kind, bytes.clone());
        let permuted = self.config.family.interleaved_in_gguf
            && (name.contains(".self_attn.q_proj.") || name.contains(".self_attn.k_proj."));
        let whole_heads = info.shape.first().is_some_and(|rows| rows.is_multiple_of(self.config.head_dim));
        Ok(if permuted && whole_heads { tensor.with_interleaved_heads(self.config.head_dim) } else { tensor })
    }

    /// Names of all tensors that the model needs are there, with their shapes, and decodable.
    pub(super) fn checked(self) -> Result<Self> {
        let mut problems = Vec::new();
        let mut wholes: BTreeMap<String, usize> = BTreeMap::new();
        for (name, expected) in (self.config.family.tensors)(&self.config) {
            if !self.is_stored(&name)
                && let Some((whole, rows)) = self.fused(&name)
            {
                let end = wholes.entry(whole).or_default();
                *end = rows.end.max(*end);
                continue;
            }
            self.check_shape(&name, &expected, &mut problems)?;
        }
        for (whole, rows) in wholes {
            let columns = if whole.ends_with(".bias") { None } else { Some(self.config.hidden_size) };
            let expected: Vec<usize> = [rows].into_iter().chain(columns).collect();
            self.check_shape(&whole, &expected, &mut problems)?;
        }
        if problems.is_empty() {
            return Ok(self);
        }
        // One wrong setting can make every tensor wrong; the first few say it all.
        if problems.len() > MAX_PROBLEMS {
            let more = problems.len() - MAX_PROBLEMS;
            problems.truncate(MAX_PROBLEMS);
            problems.push(format!("and {more} more"));
        }
        Err(ConvertError::Tensors { path: self.path, problems })
    }

    fn check_shape(&self, name: &str, expected: &[usize], problems: &mut Vec<String>) -> Result<()> {
        match self.stored(name)? {
            None => problems.push(format!("tensor {name:?} is missing")),
            Some(tensor) if tensor.shape() != expected => {
                problems.push(format!("tensor {name:?} has shape {:?}; expected {expected:?}", tensor.shape()));
            }
            Some(_) => {}
        }
        Ok(())
    }
}

/// The name that a folder gives to a tensor. In models that also see, the language model is one part of several, under
/// a name that has changed with the versions of transformers.
fn folder_name<'n>(folder: &Folder, name: &'n str) -> Option<Cow<'n, str>> {
    let has = |name: &str| folder.shape(name).is_some();
    if has(name) {
        return Some(Cow::Borrowed(name));
    }
    let inner = name.strip_prefix("model.").map(|rest| format!("model.language_model.{rest}"));
    inner.into_iter().chain([format!("language_model.{name}")]).find(|name| has(name)).map(Cow::Owned)
}
