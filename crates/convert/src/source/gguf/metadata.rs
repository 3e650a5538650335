//! The key-value part of a GGUF file, and typed access to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cursor::Cursor;
use super::value::{Array, Value, ValueKind};
use crate::error::{ConvertError, Result};

/// The longest key, in bytes (the format's own bound).
const MAX_KEY: usize = 65535;
/// Where the format puts tensors if the file does not say.
const DEFAULT_ALIGNMENT: u64 = 32;
/// The largest alignment that is believed.
const MAX_ALIGNMENT: u64 = 1 << 20;

/// The metadata of a file, by key.
#[derive(Debug, Clone)]
pub struct Metadata {
    path: PathBuf,
    entries: BTreeMap<String, Value>,
}

impl Metadata {
    pub(super) fn read(cursor: &mut Cursor, path: &Path, count: u64) -> Result<Self> {
        let mut entries = BTreeMap::new();
        for _ in 0..count {
            let at = cursor.offset();
            let key = cursor.name(MAX_KEY, "metadata key")?;
            let value = Value::read(cursor)?;
            if entries.contains_key(&key) {
                return Err(cursor.error_at(at, format!("metadata key {key:?} occurs twice")));
            }
            entries.insert(key, value);
        }
        Ok(Self { path: path.to_owned(), entries })
    }

    /// All entries, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(key)
    }

    /// The text at `key`, if the key is there.
    ///
    /// # Errors
    /// [`ConvertError::Setting`] if it is not text, or not UTF-8.
    pub fn str(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, "UTF-8 text", Value::as_str)
    }

    /// The truth value at `key`, if the key is there.
    ///
    /// # Errors
    /// [`ConvertError::Setting`] if it is of another type.
    pub fn bool(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "a truth value", Value::as_bool)
    }

    /// The number at `key`, if the key is there.
    ///
    /// # Errors
    /// [`ConvertError::Setting`] if it is not a finite number.
    pub fn f64(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a finite number", |value| value.as_f64().filter(|v| v.is_finite()))
    }

    /// The count at `key`, if the key is there. An array is taken for its elements' common value.
    ///
    /// # Errors
    /// [`ConvertError::Setting`] if it is not a whole number of 32 bits, or an array of different ones.
    pub fn u32(&self, key: &str) -> Result<Option<u32>> {
        self.typed(key, "a whole number of at most 32 bits, the same for all layers", |value| {
            let one = |value: &Value| value.as_u64().and_then(|v| u32::try_from(v).ok());
            match value {
                Value::Array(array) => {
                    let mut elements = array.iter();
                    let first = one(&elements.next()?)?;
                    elements.all(|value| one(&value) == Some(first)).then_some(first)
                }
                value => one(value),
            }
        })
    }

    /// The array at `key`, if the key is there.
    ///
    /// # Errors
    /// [`ConvertError::Setting`] if it is not an array of one of `kinds`.
    pub fn array(&self, key: &str, kinds: &[ValueKind]) -> Result<Option<&Array>> {
        let expected = format!("an array of {kinds:?}");
        self.typed(key, &expected, |value| value.as_array().filter(|array| kinds.contains(&array.kind())))
    }

    fn typed<'a, T>(&'a self, key: &str, expected: &str, get: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>> {
        match self.entries.get(key) {
            None => Ok(None),
            Some(value) => match get(value) {
                Some(found) => Ok(Some(found)),
                None => {
                    Err(ConvertError::setting(&self.path, key, format!("{}; expected {expected}", describe(value))))
                }
            },
        }
    }

    pub(super) fn alignment(&self) -> Result<u64> {
        let key = "general.alignment";
        let alignment = self.u32(key)?.map_or(DEFAULT_ALIGNMENT, u64::from);
        if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
            let problem = format!("{alignment}; expected a power of two up to {MAX_ALIGNMENT}");
            return Err(ConvertError::setting(&self.path, key, problem));
        }
        Ok(alignment)
    }
}

/// A value as an error message shows it.
fn describe(value: &Value) -> String {
    match value {
        Value::Array(array) => format!("an array of {} × {:?}", array.len(), array.kind()),
        Value::String(text) => format!("text of {} bytes", text.len()),
        value => format!("{value:?}"),
    }
}
