//! JSON files of a Hugging Face folder: bounded reading and typed access.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::{ConvertError, Result};

/// Reads a file of at most `limit` bytes.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|e| ConvertError::io(path, "open", e))?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|e| ConvertError::io(path, "read", e))?;
    if bytes.len() as u64 > limit {
        return Err(ConvertError::malformed(
            path,
            format!("the file is larger than {limit} bytes, the most that is read"),
        ));
    }
    Ok(bytes)
}

/// A JSON object that remembers its file, for errors.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    path: PathBuf,
    map: Map<String, Value>,
}

impl Object {
    /// Reads `path`, which holds an object of at most `limit` bytes.
    pub(crate) fn read(path: &Path, limit: u64) -> Result<Self> {
        Self::parse(path, &read_bounded(path, limit)?)
    }

    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(map)) => Ok(Self { path: path.to_owned(), map }),
            Ok(_) => Err(ConvertError::malformed(path, "the file holds JSON, but not an object")),
            Err(e) => Err(ConvertError::malformed(path, format!("not JSON: {e}; copy or download it again"))),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// The value at `key`; `null` is as good as absent.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    pub(crate) fn usize(&self, key: &str) -> Result<Option<usize>> {
        self.typed(key, "a whole number", |v| v.as_u64().and_then(|v| usize::try_from(v).ok()))
    }

    pub(crate) fn u32(&self, key: &str) -> Result<Option<u32>> {
        self.typed(key, "a token id", |v| v.as_u64().and_then(|v| u32::try_from(v).ok()))
    }

    /// One number or a list of numbers.
    pub(crate) fn u32_list(&self, key: &str) -> Result<Option<Vec<u32>>> {
        let one = |v: &Value| v.as_u64().and_then(|v| u32::try_from(v).ok());
        self.typed(key, "a token id or a list of them", |v| match v {
            Value::Array(list) => list.iter().map(one).collect(),
            v => one(v).map(|id| vec![id]),
        })
    }

    pub(crate) fn usize_list(&self, key: &str) -> Result<Option<Vec<usize>>> {
        let one = |v: &Value| v.as_u64().and_then(|v| usize::try_from(v).ok());
        self.typed(key, "a list of whole numbers", |v| v.as_array()?.iter().map(one).collect())
    }

    pub(crate) fn f32_list(&self, key: &str) -> Result<Option<Vec<f32>>> {
        let one = |v: &Value| v.as_f64().map(|v| v as f32).filter(|v| v.is_finite());
        self.typed(key, "a list of finite numbers", |v| v.as_array()?.iter().map(one).collect())
    }

    pub(crate) fn f64(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a finite number", |v| v.as_f64().filter(|v| v.is_finite()))
    }

    pub(crate) fn bool(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "true or false", Value::as_bool)
    }

    pub(crate) fn str(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, "text", Value::as_str)
    }

    pub(crate) fn object(&self, key: &str) -> Result<Option<Object>> {
        let map = self.typed(key, "an object", Value::as_object)?;
        Ok(map.map(|map| Object { path: self.path.clone(), map: map.clone() }))
    }

    pub(crate) fn required<T>(&self, key: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| ConvertError::setting(&self.path, key, "absent; the model cannot be understood without it"))
    }

    fn typed<'a, T>(&'a self, key: &str, expected: &str, get: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match get(value) {
                Some(found) => Ok(Some(found)),
                None => {
                    let mut shown = value.to_string();
                    if let Some((cut, _)) = shown.char_indices().nth(80) {
                        shown.truncate(cut);
                        shown.push('…');
                    }
                    Err(ConvertError::setting(&self.path, key, format!("{shown}; expected {expected}")))
                }
            },
        }
    }
}
