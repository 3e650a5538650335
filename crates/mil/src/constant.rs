//! Constants: values that the program itself carries, kept packed as the package stores them.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use half::{bf16, f16};

use crate::tensor::{Buffer, Tensor};
use crate::types::{Class, DType, Shape, StaticType, TensorType, Type, elements};

/// Where in a weight file a constant lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRef {
    /// File name as the package writes it, such as `@model_path/weights/weight.bin`.
    pub file: String,
    /// Offset of the blob's metadata.
    pub offset: u64,
}

/// A constant tensor. Elements lie little-endian, row-major, without gaps; sub-byte elements fill the bit stream from the
/// least significant bit up; truth values take a byte each.
#[derive(Clone)]
pub struct TensorConst {
    /// Element type and shape.
    pub ty: StaticType,
    /// The packed elements; empty for text.
    pub bytes: Bytes,
    /// The elements of a text tensor.
    pub strings: Vec<String>,
    /// The weight file and offset that it was read from, if it was not stored inline.
    pub blob: Option<BlobRef>,
    /// What makes the elements when the package is written; `bytes` is then empty, and nothing else can be done with them.
    pub deferred: Option<Arc<dyn Deferred>>,
}

/// Elements that are made piece by piece when a package is written, so that a large model need not fit into memory.
pub trait Deferred: Send + Sync + fmt::Debug {
    /// Hands all packed bytes to `sink`, in order.
    ///
    /// # Errors
    /// Those of `sink`, and its own.
    fn write(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>;
}

impl fmt::Debug for TensorConst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.strings[..], &self.blob) {
            ([], Some(blob)) => write!(f, "{} at {} of {}", self.ty, blob.offset, blob.file),
            ([], None) => write!(f, "{} of {} bytes", self.ty, self.bytes.len()),
            (texts, _) => write!(f, "{texts:?}"),
        }
    }
}

/// A constant of any type.
#[derive(Clone, Debug)]
pub enum Const {
    /// A tensor or scalar.
    Tensor(TensorConst),
    /// A list of constants of one type.
    List(Type, Vec<Const>),
    /// A tuple.
    Tuple(Vec<Const>),
    /// A dictionary: key type, value type, entries.
    Dictionary(Type, Type, Vec<(Const, Const)>),
}

/// Why a constant cannot be turned into a tensor.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum ConstError {
    /// An integer lies outside what the runtime holds.
    #[error(
        "element {index} of a constant of {dtype} is {value}, outside the 32-bit integers that programs compute with"
    )]
    OutOfRange {
        /// Element type.
        dtype: DType,
        /// Row-major index.
        index: usize,
        /// The element.
        value: i128,
    },
    /// Fewer bytes than the shape asks for.
    #[error("a {ty} constant needs {expected} bytes, found {found}")]
    Length {
        /// The declared type.
        ty: StaticType,
        /// Bytes that the type asks for.
        expected: usize,
        /// Bytes present.
        found: usize,
    },
    /// Text or a list where numbers are needed.
    #[error("a constant of type {found} where a tensor of numbers is needed")]
    NotNumeric {
        /// What it is.
        found: String,
    },
}

impl TensorConst {
    /// A constant from packed bytes.
    ///
    /// # Errors
    /// If the bytes are not exactly as many as the type asks for.
    pub fn new(ty: StaticType, bytes: Bytes) -> Result<Self, ConstError> {
        let expected = ty
            .shape
            .iter()
            .try_fold(1usize, |a, &b| a.checked_mul(b))
            .and_then(|n| ty.dtype.packed_bytes(n))
            .unwrap_or(usize::MAX);
        if bytes.len() != expected {
            return Err(ConstError::Length { expected, found: bytes.len(), ty });
        }
        Ok(Self { ty, bytes, strings: Vec::new(), blob: None, deferred: None })
    }

    /// Integer elements `range` (row-major), widened.
    ///
    /// # Panics
    /// If the range is out of bounds or the type is not an integer or truth value.
    pub fn ints(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = i64> + '_ {
        let dtype = self.ty.dtype;
        assert!(dtype.is_int() || dtype == DType::Bool, "{dtype} is no integer type");
        assert!(range.end <= self.ty.elements(), "range past the end of a constant");
        let bits = dtype.bits();
        range.map(move |i| {
            if bits < 8 {
                let raw = bits_at(&self.bytes, i * bits, bits);
                if dtype == DType::I4 { i64::from((raw << 4) as i8 >> 4) } else { i64::from(raw) }
            } else {
                let at = i * bits / 8;
                let b = &self.bytes[at..at + bits / 8];
                match dtype {
                    DType::Bool | DType::U8 => i64::from(b[0]),
                    DType::I8 => i64::from(b[0] as i8),
                    DType::I16 => i64::from(i16::from_le_bytes([b[0], b[1]])),
                    DType::U16 => i64::from(u16::from_le_bytes([b[0], b[1]])),
                    DType::I32 => i64::from(i32::from_le_bytes([b[0], b[1], b[2], b[3]])),
                    DType::U32 => i64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])),
                    _ => i64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]),
                }
            }
        })
    }

    /// Floating elements `range` (row-major).
    ///
    /// # Panics
    /// If the range is out of bounds or the type is not floating.
    pub fn floats(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = f32> + '_ {
        let dtype = self.ty.dtype;
        assert!(dtype.is_float(), "{dtype} is no floating type");
        assert!(range.end <= self.ty.elements(), "range past the end of a constant");
        let size = dtype.bits() / 8;
        range.map(move |i| {
            let b = &self.bytes[i * size..(i + 1) * size];
            match dtype {
                DType::F16 => f16::from_le_bytes([b[0], b[1]]).to_f32(),
                DType::BF16 => bf16::from_le_bytes([b[0], b[1]]).to_f32(),
                DType::F32 => f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
                DType::F8E4M3FN => f8_e4m3fn(b[0]),
                DType::F8E5M2 => f16::from_bits(u16::from(b[0]) << 8).to_f32(),
                _ => f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]) as f32,
            }
        })
    }

    /// The tensor of numbers that the runtime computes with.
    ///
    /// # Errors
    /// If the constant is text or holds an integer beyond 32 bits.
    pub fn to_tensor(&self) -> Result<Tensor, ConstError> {
        let n = self.ty.elements();
        let data = match self.ty.dtype.class() {
            Class::Float => Buffer::F32(self.floats(0..n).collect()),
            Class::Int => {
                let narrow = |(index, v): (usize, i64)| {
                    // An unsigned 64-bit element keeps its sign bit: report it as the file means it.
                    let value = if self.ty.dtype == DType::U64 { i128::from(v as u64) } else { i128::from(v) };
                    i32::try_from(value).map_err(|_| ConstError::OutOfRange { dtype: self.ty.dtype, index, value })
                };
                Buffer::I32(self.ints(0..n).enumerate().map(narrow).collect::<Result<_, _>>()?)
            }
            Class::Bool => Buffer::Bool(self.bytes.iter().map(|&b| b != 0).collect()),
            Class::String => return Err(ConstError::NotNumeric { found: self.ty.to_string() }),
        };
        Ok(Tensor { ty: self.ty.clone(), data })
    }
}

/// `bits` (at most 8) bits of a little-endian bit stream, from bit `at` on.
fn bits_at(bytes: &[u8], at: usize, bits: usize) -> u8 {
    let lo = u16::from(bytes[at / 8]);
    let hi = bytes.get(at / 8 + 1).copied().map_or(0, u16::from);
    (((hi << 8 | lo) >> (at % 8)) & ((1 << bits) - 1)) as u8
}

/// FP8 E4M3FN of the OCP 8-bit floating point specification: bias 7, no infinities, 0x7f and 0xff are NaN.
pub(crate) fn f8_e4m3fn(b: u8) -> f32 {
    let sign = if b & 0x80 == 0 { 1.0 } else { -1.0 };
    let (e, m) = (i32::from(b >> 3 & 15), f32::from(b & 7));
    sign * match (e, b & 7) {
        (15, 7) => f32::NAN,
        (0, _) => m * 2f32.powi(-9),
        _ => (1.0 + m / 8.0) * 2f32.powi(e - 7),
    }
}

impl Const {
    /// A tensor whose elements are made when the package is written.
    #[must_use]
    pub fn deferred(ty: StaticType, elements: Arc<dyn Deferred>) -> Self {
        let deferred = Some(elements);
        Const::Tensor(TensorConst { ty, bytes: Bytes::new(), strings: Vec::new(), blob: None, deferred })
    }

    /// The tensor, if this is one.
    #[must_use]
    pub fn tensor(&self) -> Option<&TensorConst> {
        match self {
            Const::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// The text, if this is a text scalar.
    #[must_use]
    pub fn str(&self) -> Option<&str> {
        match self {
            Const::Tensor(t) if t.strings.len() == 1 => Some(&t.strings[0]),
            _ => None,
        }
    }

    /// The constant's type.
    #[must_use]
    pub fn ty(&self) -> Type {
        match self {
            Const::Tensor(t) => Type::Tensor(TensorType::from(&t.ty)),
            Const::List(t, items) => Type::List(Box::new(t.clone()), Some(items.len())),
            Const::Tuple(items) => Type::Tuple(items.iter().map(Const::ty).collect()),
            Const::Dictionary(k, v, _) => Type::Dictionary(Box::new(k.clone()), Box::new(v.clone())),
        }
    }

    /// Text.
    #[must_use]
    pub fn text(value: impl Into<String>) -> Self {
        Self::texts(Shape::new(), vec![value.into()])
    }

    /// A text tensor.
    ///
    /// # Panics
    /// If the number of strings is not what the shape asks for.
    #[must_use]
    pub fn texts(shape: Shape, strings: Vec<String>) -> Self {
        assert_eq!(elements(&shape), strings.len(), "as many strings as elements");
        Const::Tensor(TensorConst {
            ty: StaticType { dtype: DType::String, shape },
            bytes: Bytes::new(),
            strings,
            blob: None,
            deferred: None,
        })
    }

    /// A constant of numbers in the narrowest faithful reading of `values` as `dtype`.
    ///
    /// # Panics
    /// If the number of values is not what the shape asks for, or `dtype` is not floating.
    #[must_use]
    pub fn floats(dtype: DType, shape: &[usize], values: &[f32]) -> Self {
        assert_eq!(elements(shape), values.len(), "as many values as elements");
        let mut bytes = Vec::with_capacity(values.len() * dtype.bits() / 8);
        for &v in values {
            match dtype {
                DType::F16 => bytes.extend(f16::from_f32(v).to_le_bytes()),
                DType::BF16 => bytes.extend(bf16::from_f32(v).to_le_bytes()),
                DType::F32 => bytes.extend(v.to_le_bytes()),
                DType::F64 => bytes.extend(f64::from(v).to_le_bytes()),
                other => panic!("{other} constants are not made from floats"),
            }
        }
        Const::Tensor(TensorConst {
            ty: StaticType::new(dtype, shape),
            bytes: bytes.into(),
            strings: Vec::new(),
            blob: None,
            deferred: None,
        })
    }

    /// A constant of integers or truth values, packed as `dtype`.
    ///
    /// # Panics
    /// If the number of values is not what the shape asks for, `dtype` is not an integer or truth value, or a value does
    /// not fit.
    #[must_use]
    pub fn ints(dtype: DType, shape: &[usize], values: &[i64]) -> Self {
        assert_eq!(elements(shape), values.len(), "as many values as elements");
        let bits = dtype.bits();
        let mut bytes = vec![0u8; (values.len() * bits).div_ceil(8)];
        for (i, &v) in values.iter().enumerate() {
            let (lo, hi) = int_range(dtype);
            assert!((lo..=hi).contains(&i128::from(v)), "{v} does not fit {dtype}");
            if bits < 8 {
                let raw = u16::from(v as u8 & ((1u16 << bits) - 1) as u8) << (i * bits % 8);
                bytes[i * bits / 8] |= raw as u8;
                if raw > 0xff {
                    bytes[i * bits / 8 + 1] |= (raw >> 8) as u8;
                }
            } else {
                let n = bits / 8;
                bytes[i * n..(i + 1) * n].copy_from_slice(&v.to_le_bytes()[..n]);
            }
        }
        Const::Tensor(TensorConst {
            ty: StaticType::new(dtype, shape),
            bytes: bytes.into(),
            strings: Vec::new(),
            blob: None,
            deferred: None,
        })
    }
}

/// The smallest and largest value of an integer type (0 and 1 for truth values).
pub(crate) fn int_range(dtype: DType) -> (i128, i128) {
    let bits = dtype.bits() as u32;
    match dtype {
        DType::Bool => (0, 1),
        DType::I4 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        }
        _ => {
            assert!(dtype.is_int(), "{dtype} is no integer type");
            (0, (1i128 << bits) - 1)
        }
    }
}

macro_rules! scalar_const {
    ($($t:ty => |$v:ident| $e:expr;)*) => { $(impl From<$t> for Const { fn from($v: $t) -> Self { $e } })* };
}
scalar_const! {
    bool => |v| Const::ints(DType::Bool, &[], &[i64::from(v)]);
    i32 => |v| Const::ints(DType::I32, &[], &[i64::from(v)]);
    f32 => |v| Const::floats(DType::F32, &[], &[v]);
    f16 => |v| Const::floats(DType::F16, &[], &[v.to_f32()]);
    &str => |v| Const::text(v);
    &[i32] => |v| Const::ints(DType::I32, &[v.len()], &v.iter().map(|&x| i64::from(x)).collect::<Vec<_>>());
    &[bool] => |v| Const::ints(DType::Bool, &[v.len()], &v.iter().map(|&x| i64::from(x)).collect::<Vec<_>>());
}
impl<const N: usize> From<[i32; N]> for Const {
    fn from(v: [i32; N]) -> Self {
        Const::from(&v[..])
    }
}
impl<const N: usize> From<[bool; N]> for Const {
    fn from(v: [bool; N]) -> Self {
        Const::from(&v[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sub_byte_integers_round_trip_across_byte_borders() {
        for (dtype, values) in [
            (DType::U3, vec![0i64, 7, 1, 6, 2, 5, 3, 4, 7]),
            (DType::U6, vec![63, 0, 33, 1, 62]),
            (DType::I4, vec![-8, 7, -1, 0, 3]),
            (DType::U1, vec![1, 0, 0, 1, 1, 1, 0, 1, 1]),
        ] {
            let c = Const::ints(dtype, &[values.len()], &values);
            let t = c.tensor().unwrap();
            assert_eq!(t.ints(0..values.len()).collect::<Vec<_>>(), values, "{dtype}");
        }
    }

    #[test]
    fn integers_beyond_the_runtime_are_refused_with_their_place() {
        let c = Const::ints(DType::U32, &[2], &[1, 1 << 31]);
        let err = c.tensor().unwrap().to_tensor().unwrap_err();
        assert_eq!(err, ConstError::OutOfRange { dtype: DType::U32, index: 1, value: 1 << 31 });
    }

    #[test]
    fn eight_bit_floats_follow_the_ocp_tables() {
        for (b, v) in [(0x00, 0.0), (0x38, 1.0), (0x7e, 448.0), (0x01, 0.001_953_125), (0xc0, -2.0)] {
            assert_eq!(f8_e4m3fn(b), v, "{b:#x}");
        }
        assert!(f8_e4m3fn(0x7f).is_nan());
    }
}
