//! A Hugging Face folder: `config.json`, and weights in one or several safetensors files, mapped into memory.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use anemone_package::map_file;
use bytes::Bytes;
use safetensors::{Dtype, SafeTensors};

use super::json::Object;
use super::tensor::Tensor;
use crate::dequantize::{self, Kind};
use crate::error::{ConvertError, Result};

/// The largest `config.json` or `generation_config.json`, in bytes.
const MAX_CONFIG: u64 = 16 << 20;
/// The largest `model.safetensors.index.json`, in bytes.
const MAX_INDEX: u64 = 64 << 20;
/// The largest header of a safetensors file, in bytes.
const MAX_HEADER: u64 = 32 << 20;
/// The most files that the weights may be spread over.
const MAX_SHARDS: usize = 4096;

const CONFIG: &str = "config.json";
const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// A Hugging Face folder, opened.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    config: Object,
    shards: Vec<PathBuf>,
    tensors: HashMap<String, Stored>,
}

#[derive(Debug, Clone)]
struct Stored {
    shard: usize,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Bytes,
}

impl Folder {
    /// Opens the folder at `path`: reads its settings and maps its weights.
    ///
    /// # Errors
    /// Files that are missing, malformed or too large; an index that names a file outside the folder or a tensor that
    /// its file does not have.
    pub fn open(path: &Path) -> Result<Self> {
        let config_path = path.join(CONFIG);
        if !config_path.is_file() {
            let problem = format!("there is no {CONFIG} in the folder");
            return Err(ConvertError::NotACheckpoint { path: path.to_owned(), problem });
        }
        let config = Object::read(&config_path, MAX_CONFIG)?;
        let mut folder = Self { path: path.to_owned(), config, shards: Vec::new(), tensors: HashMap::new() };
        if path.join(SINGLE).is_file() {
            folder.shards.push(path.join(SINGLE));
            for (name, stored) in read_shard(&path.join(SINGLE), 0)? {
                folder.tensors.insert(name, stored);
            }
        } else if path.join(INDEX).is_file() {
            folder.read_index()?;
        } else {
            return Err(ConvertError::NotACheckpoint { path: path.to_owned(), problem: missing_weights(path) });
        }
        Ok(folder)
    }

    fn read_index(&mut self) -> Result<()> {
        let index_path = self.path.join(INDEX);
        let index = Object::read(&index_path, MAX_INDEX)?;
        let map = index.required("weight_map", index.get("weight_map").and_then(|map| map.as_object()))?;
        let mut wanted: Vec<(&str, Vec<&str>)> = Vec::new();
        let mut positions: HashMap<&str, usize> = HashMap::new();
        for (tensor, file) in map {
            let file = file.as_str().filter(|file| is_plain_name(file)).ok_or_else(|| {
                let problem = format!("tensor {tensor:?} is in {file}; expected the name of a file in the folder");
                ConvertError::malformed(&index_path, problem)
            })?;
            let position = *positions.entry(file).or_insert_with(|| {
                wanted.push((file, Vec::new()));
                wanted.len() - 1
            });
            wanted[position].1.push(tensor);
        }
        if wanted.len() > MAX_SHARDS {
            let problem = format!("{} files of weights; at most {MAX_SHARDS} are read", wanted.len());
            return Err(ConvertError::malformed(&index_path, problem));
        }
        for (shard, (file, tensors)) in wanted.into_iter().enumerate() {
            let path = self.path.join(file);
            let mut held = read_shard(&path, shard)?;
            for tensor in tensors {
                let stored = held.remove(tensor).ok_or_else(|| {
                    ConvertError::malformed(&path, format!("tensor {tensor:?} is not here, where {INDEX} says it is"))
                })?;
                self.tensors.insert(tensor.to_owned(), stored);
            }
            self.shards.push(path);
        }
        Ok(())
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files that hold the weights.
    pub fn shards(&self) -> &[PathBuf] {
        &self.shards
    }

    pub(crate) fn config(&self) -> &Object {
        &self.config
    }

    /// `generation_config.json`, if there is one.
    pub(crate) fn generation_config(&self) -> Result<Option<Object>> {
        let path = self.path.join("generation_config.json");
        if path.is_file() { Object::read(&path, MAX_CONFIG).map(Some) } else { Ok(None) }
    }

    /// The names of all tensors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The shape of a tensor, if it is there.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|stored| stored.shape.as_slice())
    }

    /// The tensor `name`, if it is there.
    ///
    /// # Errors
    /// [`ConvertError::UnsupportedType`] for others than F32, F16 and BF16.
    pub fn tensor(&self, name: &str) -> Result<Option<Tensor>> {
        let Some(stored) = self.tensors.get(name) else { return Ok(None) };
        let kind: &'static Kind = match stored.dtype {
            Dtype::F32 => &dequantize::F32,
            Dtype::F16 => &dequantize::F16,
            Dtype::BF16 => &dequantize::BF16,
            other => {
                return Err(ConvertError::UnsupportedType {
                    path: self.shards[stored.shard].clone(),
                    tensor: name.to_owned(),
                    found: format!("{other:?}"),
                    supported: "F32, F16, BF16".to_owned(),
                });
            }
        };
        Ok(Some(Tensor::new(name.to_owned(), stored.shape.clone(), kind, stored.bytes.clone())))
    }
}

/// The tensors of one file, by name.
fn read_shard(path: &Path, shard: usize) -> Result<HashMap<String, Stored>> {
    let bytes = map_file(path).map_err(|e| ConvertError::io(path, "map", e))?;
    let wrong = |problem: String| ConvertError::malformed(path, format!("not a whole safetensors file: {problem}"));
    let damaged = |problem: String| wrong(format!("{problem}; copy or download it again"));
    if bytes.starts_with(b"version https://git-lfs") {
        return Err(wrong("it is a Git LFS pointer; fetch the file itself with `git lfs pull`".to_owned()));
    }
    let header = bytes.first_chunk::<8>().map_or(0, |length| u64::from_le_bytes(*length));
    if header > MAX_HEADER {
        return Err(damaged(format!("its header is {header} bytes long; at most {MAX_HEADER} are read")));
    }
    let (header, metadata) = SafeTensors::read_metadata(&bytes).map_err(|e| damaged(e.to_string()))?;
    let data = bytes.slice(8 + header..);
    let mut tensors = HashMap::new();
    for (name, info) in metadata.tensors() {
        let (start, end) = info.data_offsets;
        let bytes = data.slice(start..end);
        tensors.insert(name, Stored { shard, dtype: info.dtype, shape: info.shape.clone(), bytes });
    }
    Ok(tensors)
}

/// Whether a name from the index stays within the folder.
fn is_plain_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    let one = matches!(components.next(), Some(Component::Normal(part)) if part == name);
    one && components.next().is_none() && !name.contains(['\\', ':', '\0'])
}

/// What to say of a folder without safetensors weights.
fn missing_weights(path: &Path) -> String {
    for (file, advice) in [
        ("pytorch_model.bin", "the weights are pickled (pytorch_model.bin); save the model as safetensors first"),
        (
            "pytorch_model.bin.index.json",
            "the weights are pickled (pytorch_model-*.bin); save the model as safetensors first",
        ),
        ("adapter_model.safetensors", "the folder holds an adapter; merge it into its base model first"),
    ] {
        if path.join(file).is_file() {
            return advice.to_owned();
        }
    }
    format!("there is neither {SINGLE} nor {INDEX} in the folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_file_names_are_followed() {
        for name in ["model-00001-of-00002.safetensors", "a b", "..x"] {
            assert!(is_plain_name(name), "{name}");
        }
        for name in ["", ".", "..", "../x", "/etc/passwd", "a/b", "./a", "a/", "a\\b", "c:x", "a\0b"] {
            assert!(!is_plain_name(name), "{name}");
        }
    }
}
