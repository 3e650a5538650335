//! Elements as files have them, and their way into the element types of programs and out again.

use anemone_mil::types::{Class, DType, StaticType};
use anemone_mil::{Buffer, Data, Tensor};
use anyhow::{Result, bail};
use half::{bf16, f16};

/// Tensors that are made up may have this many elements.
pub const MAX_ELEMENTS: usize = 1 << 31;

/// One element of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer or a truth value (0 or 1).
    Int(i128),
    /// A floating number.
    Float(f64),
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Int(n) => n.fmt(f),
            Number::Float(x) => x.fmt(f),
        }
    }
}

/// A type of elements that files have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are the types' own names")]
pub enum Kind {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
}

impl Kind {
    /// Bytes of one element.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Kind::Bool | Kind::I8 | Kind::U8 => 1,
            Kind::I16 | Kind::U16 | Kind::F16 | Kind::BF16 => 2,
            Kind::I32 | Kind::U32 | Kind::F32 => 4,
            Kind::I64 | Kind::U64 | Kind::F64 => 8,
        }
    }

    /// One element from its little-endian bytes, of which there must be [`bytes`](Kind::bytes) many.
    fn read(self, b: &[u8]) -> Number {
        let raw = b.iter().rev().fold(0u64, |all, &byte| all << 8 | u64::from(byte));
        match self {
            Kind::Bool => Number::Int(i128::from(raw != 0)),
            Kind::I8 => Number::Int((raw as i8).into()),
            Kind::I16 => Number::Int((raw as i16).into()),
            Kind::I32 => Number::Int((raw as i32).into()),
            Kind::I64 => Number::Int((raw as i64).into()),
            Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 => Number::Int(raw.into()),
            Kind::F16 => Number::Float(f16::from_bits(raw as u16).to_f64()),
            Kind::BF16 => Number::Float(bf16::from_bits(raw as u16).to_f64()),
            Kind::F32 => Number::Float(f32::from_bits(raw as u32).into()),
            Kind::F64 => Number::Float(f64::from_bits(raw)),
        }
    }
}

/// A tensor of a file: little-endian elements, row-major. There are as many bytes as kind and shape ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Values<'a> {
    /// The type of its elements.
    pub kind: Kind,
    /// Its extents.
    pub shape: Vec<usize>,
    /// Its elements.
    pub bytes: std::borrow::Cow<'a, [u8]>,
}

impl Values<'_> {
    /// The tensor of type `ty` with these elements.
    ///
    /// # Errors
    /// If the counts of elements differ, or an element is not one that `ty` can hold.
    pub fn to_tensor(&self, ty: &StaticType) -> Result<Tensor> {
        let size = self.kind.bytes();
        let found = self.bytes.len() / size;
        if found != ty.elements() {
            bail!("{found} elements where {ty} has {}", ty.elements());
        }
        tensor(ty, |i| self.kind.read(&self.bytes[i * size..(i + 1) * size]))
    }
}

/// The tensor of type `ty` whose element `i`, in row-major order, is `at(i)`.
///
/// # Errors
/// If an element is not one that `ty` can hold. Floating elements are rounded, but not to infinity.
pub fn tensor(ty: &StaticType, at: impl Fn(usize) -> Number) -> Result<Tensor> {
    let n = ty.shape.iter().try_fold(1usize, |a, &b| a.checked_mul(b)).filter(|&n| n <= MAX_ELEMENTS);
    let Some(n) = n else { bail!("{ty} has more than the {MAX_ELEMENTS} elements that are taken") };
    let fits = |i: usize, held: bool| {
        if held { Ok(()) } else { Err(anyhow::anyhow!("element {i} is {}, which {} cannot hold", at(i), ty.dtype)) }
    };
    let data = match ty.dtype.class() {
        Class::Float => {
            let mut all = Vec::with_capacity(n);
            for i in 0..n {
                let held = float(ty.dtype, at(i));
                fits(i, held.is_some())?;
                all.extend(held);
            }
            Buffer::F32(all)
        }
        Class::Int => {
            let mut all = Vec::with_capacity(n);
            for i in 0..n {
                let held = int(ty.dtype, at(i));
                fits(i, held.is_some())?;
                all.extend(held);
            }
            Buffer::I32(all)
        }
        Class::Bool => {
            let mut all = Vec::with_capacity(n);
            for i in 0..n {
                let held = whole(at(i)).filter(|n| (0..=1).contains(n));
                fits(i, held.is_some())?;
                all.extend(held.map(|n| n == 1));
            }
            Buffer::Bool(all)
        }
        Class::String => bail!("text cannot be given"),
    };
    Ok(Tensor { ty: ty.clone(), data })
}

fn float(dtype: DType, number: Number) -> Option<f32> {
    let exact = match number {
        Number::Int(n) => n as f64,
        Number::Float(x) => x,
    };
    let held = match dtype {
        DType::F16 => f16::from_f64(exact).to_f32(),
        DType::BF16 => bf16::from_f64(exact).to_f32(),
        _ => exact as f32,
    };
    (held.is_finite() || !exact.is_finite()).then_some(held)
}

fn int(dtype: DType, number: Number) -> Option<i32> {
    let signed = matches!(dtype, DType::I4 | DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let bits = dtype.bits() as u32;
    let (low, high) = if signed { (-(1i128 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    let n = whole(number).filter(|n| (low..=high).contains(n))?;
    i32::try_from(n).ok()
}

fn whole(number: Number) -> Option<i128> {
    match number {
        Number::Int(n) => Some(n),
        // Beyond 2^100 there is nothing that any type holds.
        Number::Float(x) if x.fract() == 0.0 && x.abs() < 1e30 => Some(x as i128),
        Number::Float(_) => None,
    }
}

/// The elements in the type that is declared for them: the kind of file, little-endian bytes.
///
/// # Errors
/// If files have no such type.
pub fn encode(dtype: DType, data: Data<'_>) -> Result<(Kind, Vec<u8>)> {
    fn all<T: Copy, const N: usize>(values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(|&v| bytes(v)).collect()
    }
    Ok(match (dtype, data) {
        (DType::F16, Data::F32(v)) => (Kind::F16, all(v, |x| f16::from_f32(x).to_le_bytes())),
        (DType::BF16, Data::F32(v)) => (Kind::BF16, all(v, |x| bf16::from_f32(x).to_le_bytes())),
        (DType::F32, Data::F32(v)) => (Kind::F32, all(v, f32::to_le_bytes)),
        (DType::F64, Data::F32(v)) => (Kind::F64, all(v, |x| f64::from(x).to_le_bytes())),
        (DType::I8, Data::I32(v)) => (Kind::I8, all(v, |x| (x as i8).to_le_bytes())),
        (DType::U8, Data::I32(v)) => (Kind::U8, all(v, |x| (x as u8).to_le_bytes())),
        (DType::I16, Data::I32(v)) => (Kind::I16, all(v, |x| (x as i16).to_le_bytes())),
        (DType::U16, Data::I32(v)) => (Kind::U16, all(v, |x| (x as u16).to_le_bytes())),
        (DType::I32, Data::I32(v)) => (Kind::I32, all(v, i32::to_le_bytes)),
        (DType::U32, Data::I32(v)) => (Kind::U32, all(v, i32::to_le_bytes)),
        (DType::I64, Data::I32(v)) => (Kind::I64, all(v, |x| i64::from(x).to_le_bytes())),
        (DType::U64, Data::I32(v)) => (Kind::U64, all(v, |x| i64::from(x).to_le_bytes())),
        (DType::Bool, Data::Bool(v)) => (Kind::Bool, all(v, |x| [u8::from(x)])),
        (dtype, _) => bail!("files of tensors have no elements of type {dtype}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(dtype: DType, numbers: &[Number]) -> Result<Buffer> {
        tensor(&StaticType::new(dtype, &[numbers.len()]), |i| numbers[i]).map(|t| t.data)
    }

    #[test]
    fn elements_become_what_the_port_holds_or_are_refused() {
        use Number::{Float, Int};
        assert_eq!(convert(DType::I32, &[Int(-5), Float(7.0)]).unwrap(), Buffer::I32(vec![-5, 7]));
        assert_eq!(convert(DType::F16, &[Int(2049), Float(0.1)]).unwrap(), Buffer::F32(vec![2048.0, 0.099_975_586]));
        assert_eq!(convert(DType::F16, &[Float(f64::INFINITY)]).unwrap(), Buffer::F32(vec![f32::INFINITY]));
        assert_eq!(convert(DType::Bool, &[Int(1), Float(0.0)]).unwrap(), Buffer::Bool(vec![true, false]));
        for (dtype, number, text) in [
            (DType::F16, Float(70000.0), "element 1 is 70000, which fp16 cannot hold"),
            (DType::F32, Float(1e39), "which fp32 cannot hold"),
            (DType::I32, Float(0.5), "element 1 is 0.5, which int32 cannot hold"),
            (DType::I32, Int(1 << 31), "which int32 cannot hold"),
            (DType::U8, Int(-1), "which uint8 cannot hold"),
            (DType::I32, Float(f64::NAN), "which int32 cannot hold"),
            (DType::Bool, Int(2), "which bool cannot hold"),
        ] {
            let error = convert(dtype, &[Int(0), number]).unwrap_err().to_string();
            assert!(error.contains(text), "{dtype} {number}: {error}");
        }
    }

    #[test]
    fn every_kind_of_file_is_read() {
        for (kind, bytes, expected) in [
            (Kind::I8, vec![0xff], Number::Int(-1)),
            (Kind::U8, vec![0xff], Number::Int(255)),
            (Kind::I16, vec![0xfe, 0xff], Number::Int(-2)),
            (Kind::U64, vec![0xff; 8], Number::Int(u64::MAX.into())),
            (Kind::I64, vec![0xff; 8], Number::Int(-1)),
            (Kind::F16, f16::from_f32(-1.5).to_le_bytes().to_vec(), Number::Float(-1.5)),
            (Kind::BF16, bf16::from_f32(-1.5).to_le_bytes().to_vec(), Number::Float(-1.5)),
            (Kind::F32, 0.25f32.to_le_bytes().to_vec(), Number::Float(0.25)),
            (Kind::F64, 0.25f64.to_le_bytes().to_vec(), Number::Float(0.25)),
            (Kind::Bool, vec![1], Number::Int(1)),
        ] {
            assert_eq!(bytes.len(), kind.bytes());
            assert_eq!(kind.read(&bytes), expected, "{kind:?}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        for (dtype, data) in [
            (DType::F16, Data::F32(&[1.5, -2.0])),
            (DType::F64, Data::F32(&[1.5, -2.0])),
            (DType::I8, Data::I32(&[-128, 127])),
            (DType::U16, Data::I32(&[0, 65535])),
            (DType::I32, Data::I32(&[i32::MIN, i32::MAX])),
            (DType::Bool, Data::Bool(&[true, false])),
        ] {
            let (kind, bytes) = encode(dtype, data).unwrap();
            let back = Values { kind, shape: vec![2], bytes: bytes.into() };
            let back = back.to_tensor(&StaticType::new(dtype, &[2])).unwrap();
            assert_eq!(encode(dtype, back.data.view(2)).unwrap().1, back_bytes(dtype, data));
        }
        assert!(encode(DType::U4, Data::I32(&[1])).is_err());
    }

    fn back_bytes(dtype: DType, data: Data<'_>) -> Vec<u8> {
        encode(dtype, data).unwrap().1
    }

    #[test]
    fn shapes_beyond_the_bound_are_refused_before_anything_is_allocated() {
        let error = tensor(&StaticType::new(DType::F32, &[1 << 40, 1 << 40]), |_| Number::Int(0)).unwrap_err();
        assert!(error.to_string().contains("more than"), "{error}");
    }
}
