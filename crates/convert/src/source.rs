//! Checkpoints: a GGUF file or a Hugging Face folder, seen as one thing.
//!
//! [`Source::open`] reads settings and maps weights; nothing is decoded before it is asked for. Names and the order of
//! rows are those of Hugging Face, whatever the file has.

pub mod config;
pub mod family;
pub mod gguf;
mod gguf_config;
mod hf_config;
pub(crate) mod json;
pub mod safetensors;
mod tensor;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use self::config::Config;
use self::family::Family;
use self::gguf::{Gguf, TensorInfo};
use self::safetensors::Folder;
pub use self::tensor::Tensor;
use crate::dequantize;
use crate::error::{ConvertError, Result};
use crate::tokenizer::{GenerationSettings, TokenizerFiles};

/// The embedding, which an output projection may be tied to.
const EMBEDDING: &str = "model.embed_tokens.weight";
const OUTPUT: &str = "lm_head.weight";

/// A checkpoint of a supported family, opened.
#[derive(Debug, Clone)]
pub struct Source {
    path: PathBuf,
    config: Config,
    generation: GenerationSettings,
    store: Store,
}

#[derive(Debug, Clone)]
enum Store {
    Gguf {
        file: Gguf,
        /// The file's name for each Hugging Face name.
        names: HashMap<String, String>,
    },
    Folder(Folder),
}

/// Which form a checkpoint has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A GGUF file, or several parts of one.
    Gguf,
    /// A Hugging Face folder with safetensors.
    HuggingFace,
}

impl Source {
    /// Opens a GGUF file (any part of a split one), a Hugging Face folder, or a folder that holds one GGUF model.
    /// Checks that every tensor that the settings ask for is there, in the right shape and a type that can be decoded.
    ///
    /// # Errors
    /// Any [`ConvertError`] about reading: each names the file and what is wrong with it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let metadata = std::fs::metadata(path).map_err(|e| ConvertError::io(path, "open", e))?;
        if !metadata.is_dir() {
            return Self::from_gguf(Gguf::open(path)?);
        }
        if !path.join("config.json").is_file()
            && let Some(file) = only_gguf(path)?
        {
            return Self::from_gguf(Gguf::open(&file)?);
        }
        Self::from_folder(Folder::open(path)?)
    }

    /// The checkpoint in an opened GGUF file.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn from_gguf(file: Gguf) -> Result<Self> {
        let generation = GenerationSettings::from_gguf(&file)?;
        let config = gguf_config::read(&file, &generation)?;
        config.check(file.path())?;
        if let Some(tokens) = file.metadata().get("tokenizer.ggml.tokens").and_then(gguf::Value::as_array)
            && tokens.len() > config.vocab_size
        {
            let problem = format!("{} tokens, but the embedding has {} rows", tokens.len(), config.vocab_size);
            return Err(ConvertError::setting(file.path(), "tokenizer.ggml.tokens", problem));
        }
        let mut names = HashMap::new();
        for info in file.tensors().iter() {
            if let Some(name) = gguf::to_hugging_face(&info.name)
                && let Some(other) = names.insert(name.clone(), info.name.clone())
            {
                let problem = format!("tensors {other:?} and {:?} are both {name}", info.name);
                return Err(ConvertError::Tensors { path: file.path().to_owned(), problems: vec![problem] });
            }
        }
        let path = file.path().to_owned();
        Self { path, config, generation, store: Store::Gguf { file, names } }.checked()
    }

    /// The checkpoint in an opened Hugging Face folder.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn from_folder(folder: Folder) -> Result<Self> {
        let generation = GenerationSettings::from_folder(&folder)?;
        let config = hf_config::read(folder.config(), &generation)?;
        config.check(folder.config().path())?;
        let path = folder.path().to_owned();
        Self { path, config, generation, store: Store::Folder(folder) }.checked()
    }

    /// The path of the file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which form the checkpoint has.
    pub fn format(&self) -> Format {
        match &self.store {
            Store::Gguf { .. } => Format::Gguf,
            Store::Folder(_) => Format::HuggingFace,
        }
    }

    /// The files that hold the weights, for digests.
    pub fn weight_files(&self) -> &[PathBuf] {
        match &self.store {
            Store::Gguf { file, .. } => file.parts(),
            Store::Folder(folder) => folder.shards(),
        }
    }

    /// A name for the model: that of the GGUF metadata, or of the folder or file.
    pub fn name(&self) -> String {
        if let Store::Gguf { file, .. } = &self.store
            && let Ok(Some(name)) = file.metadata().str("general.name")
        {
            return name.to_owned();
        }
        let stem = if self.format() == Format::Gguf { self.path.file_stem() } else { self.path.file_name() };
        stem.map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// The family of architectures.
    pub fn architecture(&self) -> &'static Family {
        self.config.family
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How text is generated: special tokens and sampling defaults.
    pub fn generation(&self) -> &GenerationSettings {
        &self.generation
    }

    /// The tokenizer and chat template: from the folder, or rebuilt from GGUF metadata.
    ///
    /// # Errors
    /// [`ConvertError::Tokenizer`] if there is none or it cannot be understood.
    pub fn tokenizer(&self) -> Result<TokenizerFiles> {
        match &self.store {
            Store::Gguf { file, .. } => TokenizerFiles::from_gguf(file),
            Store::Folder(folder) => TokenizerFiles::from_folder(folder.path()),
        }
    }

    /// Whether there is a tokenizer, good or bad.
    pub fn has_tokenizer(&self) -> bool {
        match &self.store {
            Store::Gguf { file, .. } => file.metadata().get("tokenizer.ggml.model").is_some(),
            Store::Folder(folder) => folder.path().join("tokenizer.json").is_file(),
        }
    }

    /// Whether there is a tensor of this Hugging Face name.
    pub fn has_tensor(&self, name: &str) -> bool {
        match &self.store {
            Store::Gguf { names, .. } => names.contains_key(name),
            Store::Folder(folder) => folder.shape(name).is_some(),
        }
    }

    /// The tensor of this Hugging Face name, its rows in Hugging Face's order. `lm_head.weight` is the embedding if the
    /// two are tied.
    ///
    /// # Errors
    /// [`ConvertError::Tensors`] if it is absent, [`ConvertError::UnsupportedType`] if it cannot be decoded.
    pub fn tensor(&self, name: &str) -> Result<Tensor> {
        let wanted = if name == OUTPUT && self.config.tie_embeddings { EMBEDDING } else { name };
        let found = match &self.store {
            Store::Folder(folder) => folder.tensor(wanted)?,
            Store::Gguf { file, names } => {
                let info = names.get(wanted).and_then(|name| file.tensors().get(name));
                info.map(|info| self.gguf_tensor(file, wanted, info)).transpose()?
            }
        };
        found.ok_or_else(|| ConvertError::Tensors {
            path: self.path.clone(),
            problems: vec![format!("there is no tensor {wanted:?}")],
        })
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
    fn checked(self) -> Result<Self> {
        let mut problems = Vec::new();
        for (name, expected) in (self.config.family.tensors)(&self.config) {
            if !self.has_tensor(&name) {
                problems.push(format!("tensor {name:?} is missing"));
                continue;
            }
            let tensor = self.tensor(&name)?;
            if tensor.shape() != expected {
                problems.push(format!("tensor {name:?} has shape {:?}; expected {expected:?}", tensor.shape()));
            }
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
}

/// The most tensors that one error tells of.
const MAX_PROBLEMS: usize = 8;

/// The GGUF model in a folder, if there is exactly one.
fn only_gguf(folder: &Path) -> Result<Option<PathBuf>> {
    let failed = |e| ConvertError::io(folder, "list", e);
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let later_part = name.contains("-of-") && !name.contains("-00001-of-");
        if name.ends_with(".gguf") && !later_part {
            found.push(path);
        }
    }
    found.sort();
    match found.len() {
        0 | 1 => Ok(found.pop()),
        n => {
            let names: Vec<_> = found
                .iter()
                .take(MAX_PROBLEMS)
                .filter_map(|path| path.file_name())
                .map(|n| n.to_string_lossy())
                .collect();
            let problem = format!("the folder holds {n} GGUF models; give the path of one: {}", names.join(", "));
            Err(ConvertError::NotACheckpoint { path: folder.to_owned(), problem })
        }
    }
}

/// `total / parts`, for the size of heads where it is not given.
fn even_split(path: &Path, key: &str, total: usize, parts: usize) -> Result<usize> {
    match total.checked_rem(parts) {
        Some(0) => Ok(total / parts),
        _ => Err(ConvertError::setting(path, key, format!("{total}, which does not divide into {parts} heads"))),
    }
}

fn unsupported_scaling(path: &Path, kind: &str) -> ConvertError {
    ConvertError::UnsupportedFeature {
        path: path.to_owned(),
        feature: format!("rope scaling {kind:?}"),
        remedy: "supported: none, linear, llama3".to_owned(),
    }
}

fn undecodable(path: &Path, info: &TensorInfo) -> ConvertError {
    ConvertError::UnsupportedType {
        path: path.to_owned(),
        tensor: info.name.clone(),
        found: info.kind_name(),
        supported: dequantize::supported(),
    }
}
