//! Checkpoints: a GGUF file or a Hugging Face folder, seen as one thing.
//!
//! [`Source::open`] reads settings and maps weights; nothing is decoded before it is asked for. Names and the order of
//! rows are those of Hugging Face, whatever the file has.

pub mod config;
pub mod family;
pub mod gguf;
pub(crate) mod gguf_config;
pub(crate) mod hf_config;
mod hf_rope;
pub(crate) mod json;
mod lookup;
mod lora;
mod rope;
pub mod safetensors;
mod tensor;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::config::Config;
use self::family::Family;
use self::gguf::{Gguf, TensorInfo};
use self::safetensors::Folder;
pub use self::tensor::Tensor;
use crate::dequantize;
use crate::error::{ConvertError, Result};
use crate::tokenizer::{GenerationSettings, TokenizerFiles};

/// A checkpoint of a supported family, opened.
#[derive(Debug, Clone)]
pub struct Source {
    path: PathBuf,
    config: Config,
    generation: GenerationSettings,
    store: Store,
    /// An adapter that is merged into the weights as they are read.
    lora: Option<Arc<lora::Lora>>,
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
            if let Some(name) = gguf::to_hugging_face(&info.name, config.family)
                && let Some(other) = names.insert(name.clone(), info.name.clone())
            {
                let problem = format!("tensors {other:?} and {:?} are both {name}", info.name);
                return Err(ConvertError::Tensors { path: file.path().to_owned(), problems: vec![problem] });
            }
        }
        let path = file.path().to_owned();
        Self { path, config, generation, store: Store::Gguf { file, names }, lora: None }.checked()
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
        Self { path, config, generation, store: Store::Folder(folder), lora: None }.checked()
    }

    /// The same with a LoRA adapter merged into its weights as they are read: a folder as Hugging Face's PEFT saves it.
    ///
    /// # Errors
    /// [`ConvertError::Tensors`] if the adapter has tensors that do not belong to this model, by name or shape;
    /// [`ConvertError::UnsupportedFeature`] if it is more than a product of two matrices for each module.
    pub fn with_lora(mut self, folder: impl AsRef<Path>) -> Result<Self> {
        self.lora = None;
        self.lora = Some(Arc::new(lora::Lora::read(folder.as_ref(), &self)?));
        Ok(self)
    }

    /// The adapter that is merged into the weights: the file of its weights, and what it is, in words.
    pub fn lora(&self) -> Option<(&Path, &str)> {
        self.lora.as_ref().map(|lora| (lora.file(), lora.about()))
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

    /// Whether the checkpoint is of a model that also reads pictures or sound, of which the language model is a part.
    pub fn is_part(&self) -> bool {
        match &self.store {
            Store::Gguf { .. } => false,
            Store::Folder(folder) => folder.config().get("text_config").is_some(),
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
        remedy: "supported: none, linear, llama3, longrope".to_owned(),
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
