//! Metadata values of a GGUF file.

use bytes::Bytes;

use super::cursor::Cursor;
use crate::error::Result;

/// How deep arrays may hold arrays.
const MAX_DEPTH: usize = 4;

/// The type of a metadata value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the format's own")]
pub enum ValueKind {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    Array,
    U64,
    I64,
    F64,
}

impl ValueKind {
    fn from_code(code: u32) -> Option<Self> {
        use ValueKind::*;
        [U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64].get(usize::try_from(code).ok()?).copied()
    }

    /// Bytes of a value, where they are the same for all.
    fn fixed_size(self) -> Option<u64> {
        use ValueKind::*;
        match self {
            U8 | I8 | Bool => Some(1),
            U16 | I16 => Some(2),
            U32 | I32 | F32 => Some(4),
            U64 | I64 | F64 => Some(8),
            String | Array => None,
        }
    }
}

/// A metadata value. Text and arrays are ranges of the file.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are the format's own")]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    /// Text, which should be UTF-8 and is not checked to be.
    String(Bytes),
    Array(Array),
    U64(u64),
    I64(i64),
    F64(f64),
}

impl Value {
    pub(super) fn read(cursor: &mut Cursor) -> Result<Self> {
        let kind = read_kind(cursor)?;
        Self::read_kind(cursor, kind, 0)
    }

    fn read_kind(cursor: &mut Cursor, kind: ValueKind, depth: usize) -> Result<Self> {
        let what = "metadata value";
        Ok(match kind {
            ValueKind::U8 => Self::U8(u8::from_le_bytes(cursor.array(what)?)),
            ValueKind::I8 => Self::I8(i8::from_le_bytes(cursor.array(what)?)),
            ValueKind::U16 => Self::U16(u16::from_le_bytes(cursor.array(what)?)),
            ValueKind::I16 => Self::I16(i16::from_le_bytes(cursor.array(what)?)),
            ValueKind::U32 => Self::U32(cursor.u32(what)?),
            ValueKind::I32 => Self::I32(i32::from_le_bytes(cursor.array(what)?)),
            ValueKind::F32 => Self::F32(f32::from_le_bytes(cursor.array(what)?)),
            ValueKind::Bool => Self::Bool(cursor.array::<1>(what)?[0] != 0),
            ValueKind::String => Self::String(cursor.text(what)?),
            ValueKind::Array => Self::Array(Array::read(cursor, depth)?),
            ValueKind::U64 => Self::U64(cursor.u64(what)?),
            ValueKind::I64 => Self::I64(i64::from_le_bytes(cursor.array(what)?)),
            ValueKind::F64 => Self::F64(f64::from_le_bytes(cursor.array(what)?)),
        })
    }

    /// The value's type.
    pub fn kind(&self) -> ValueKind {
        match self {
            Self::U8(_) => ValueKind::U8,
            Self::I8(_) => ValueKind::I8,
            Self::U16(_) => ValueKind::U16,
            Self::I16(_) => ValueKind::I16,
            Self::U32(_) => ValueKind::U32,
            Self::I32(_) => ValueKind::I32,
            Self::F32(_) => ValueKind::F32,
            Self::Bool(_) => ValueKind::Bool,
            Self::String(_) => ValueKind::String,
            Self::Array(_) => ValueKind::Array,
            Self::U64(_) => ValueKind::U64,
            Self::I64(_) => ValueKind::I64,
            Self::F64(_) => ValueKind::F64,
        }
    }

    /// An integer of any width that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::U8(v) => Some(v.into()),
            Self::U16(v) => Some(v.into()),
            Self::U32(v) => Some(v.into()),
            Self::U64(v) => Some(v),
            Self::I8(v) => v.try_into().ok(),
            Self::I16(v) => v.try_into().ok(),
            Self::I32(v) => v.try_into().ok(),
            Self::I64(v) => v.try_into().ok(),
            _ => None,
        }
    }

    /// A number of any type, as the nearest `f64`.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::F32(v) => Some(v.into()),
            Self::F64(v) => Some(v),
            Self::I8(v) => Some(v.into()),
            Self::I16(v) => Some(v.into()),
            Self::I32(v) => Some(v.into()),
            Self::I64(v) => Some(v as f64),
            _ => self.as_u64().map(|v| v as f64),
        }
    }

    /// A truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(v) => Some(*v),
            _ => None,
        }
    }

    /// Text, if it is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    /// An array.
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }
}

/// An array of metadata values of one type, decoded as it is walked.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    kind: ValueKind,
    len: usize,
    /// The elements as they are stored, walked once and known to be whole.
    bytes: Bytes,
    wide: bool,
}

impl Array {
    fn read(cursor: &mut Cursor, depth: usize) -> Result<Self> {
        let start = cursor.offset();
        if depth == MAX_DEPTH {
            return Err(cursor.error(format!("arrays in arrays more than {MAX_DEPTH} deep")));
        }
        let kind = read_kind(cursor)?;
        let len = cursor.count("array length")?;
        let first = cursor.offset();
        if let Some(size) = kind.fixed_size() {
            let total = len.checked_mul(size).ok_or_else(|| cursor.error_at(start, "an array longer than any file"))?;
            cursor.take(total, "array")?;
        } else {
            // Each element takes at least its length field, so the walk ends with the file at the latest.
            for _ in 0..len {
                match kind {
                    ValueKind::String => drop(cursor.text("text in an array")?),
                    _ => drop(Self::read(cursor, depth + 1)?),
                }
            }
        }
        let bytes = cursor.range(first, cursor.offset() - first).expect("the cursor has passed these bytes");
        let len = usize::try_from(len).expect("each element took at least one byte of the file");
        Ok(Self { kind, len, bytes, wide: cursor.wide() })
    }

    /// The type of the elements.
    pub fn kind(&self) -> ValueKind {
        self.kind
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements as they are stored.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Value> + use<> {
        let mut cursor = Cursor::new(std::path::Path::new(""), self.bytes.clone());
        cursor.set_version(if self.wide { 2 } else { 1 });
        let kind = self.kind;
        (0..self.len).map(move |_| {
            Value::read_kind(&mut cursor, kind, 0).expect("the array was walked when the file was parsed")
        })
    }

    /// The elements of an array of text, as bytes in the file; empty for other arrays.
    pub fn texts(&self) -> impl Iterator<Item = Bytes> + use<> {
        self.iter().filter_map(|value| match value {
            Value::String(text) => Some(text),
            _ => None,
        })
    }
}

fn read_kind(cursor: &mut Cursor) -> Result<ValueKind> {
    let at = cursor.offset();
    let code = cursor.u32("value type")?;
    ValueKind::from_code(code)
        .ok_or_else(|| cursor.error_at(at, format!("unknown value type {code}; types are 0 to 12")))
}
