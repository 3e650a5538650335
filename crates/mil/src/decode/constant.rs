//! Constants: immediate values and references into weight files.

use anemone_package::proto::mil::{self, ImmediateKind, TensorData, ValueKind};
use bytes::Bytes;

use super::{Context, MAX_DEPTH};
use crate::constant::{BlobRef, Const, TensorConst};
use crate::error::Fault;
use crate::types::{DType, StaticType, Type};

impl Context<'_> {
    pub(super) fn constant(&self, value: &mil::Value, depth: usize) -> Result<Const, Fault> {
        if depth > MAX_DEPTH {
            return Err(Fault::new(format!("constants nested at most {MAX_DEPTH} deep"), "a deeper one"));
        }
        if !value.doc_string.is_empty() {
            self.leave_out("doc strings of values");
        }
        let ty = self.ty(value.r#type.as_ref(), 0)?;
        match (&value.value, ty) {
            (None, ty) => Err(Fault::new(format!("a value of type {ty}"), "none")),
            (Some(ValueKind::BlobFileValue(blob)), ty) => self.blob(blob, &ty),
            (Some(ValueKind::ImmediateValue(immediate)), ty) => match (&immediate.value, ty) {
                (Some(ImmediateKind::Tensor(t)), ty @ Type::Tensor(_)) => tensor(t.value.as_ref(), static_type(&ty)?),
                (None, ty @ Type::Tensor(_)) => tensor(None, static_type(&ty)?),
                (Some(ImmediateKind::List(list)), Type::List(element, length)) => {
                    if length.is_some_and(|n| n != list.values.len()) {
                        return Err(Fault::new(
                            format!("{} elements, as the list's type says", length.unwrap_or_default()),
                            list.values.len().to_string(),
                        ));
                    }
                    Ok(Const::List(*element, self.constants(&list.values, depth)?))
                }
                (Some(ImmediateKind::Tuple(tuple)), Type::Tuple(types)) => {
                    if types.len() != tuple.values.len() {
                        return Err(Fault::new(
                            format!("{} members, as the tuple's type says", types.len()),
                            tuple.values.len().to_string(),
                        ));
                    }
                    Ok(Const::Tuple(self.constants(&tuple.values, depth)?))
                }
                (Some(ImmediateKind::Dictionary(dictionary)), Type::Dictionary(key, value)) => {
                    let side = |side: &Option<mil::Value>| match side {
                        Some(side) => self.constant(side, depth + 1),
                        None => Err(Fault::new("entries of a key and a value", "one without")),
                    };
                    let entries = dictionary.values.iter().map(|e| Ok((side(&e.key)?, side(&e.value)?)));
                    Ok(Const::Dictionary(*key, *value, entries.collect::<Result<_, Fault>>()?))
                }
                (found, ty) => Err(Fault::new(
                    format!("a value of type {ty}"),
                    match found {
                        None => "none",
                        Some(ImmediateKind::Tensor(_)) => "a tensor",
                        Some(ImmediateKind::Tuple(_)) => "a tuple",
                        Some(ImmediateKind::List(_)) => "a list",
                        Some(ImmediateKind::Dictionary(_)) => "a dictionary",
                    },
                )),
            },
        }
    }

    fn constants(&self, values: &[mil::Value], depth: usize) -> Result<Vec<Const>, Fault> {
        values.iter().map(|v| self.constant(v, depth + 1)).collect()
    }

    fn blob(&self, blob: &mil::BlobFileValue, ty: &Type) -> Result<Const, Fault> {
        let ty = static_type(ty)?;
        let at = || format!("`{}` offset {}", blob.file_name, blob.offset);
        let (dtype, bytes) = self
            .blobs
            .blob(&blob.file_name, blob.offset)
            .map_err(|why| Fault::new(format!("a blob in {}", at()), why))?;
        if dtype != ty.dtype {
            return Err(Fault::new(format!("elements of {} in {}", ty.dtype, at()), dtype.name()));
        }
        let mut tensor = packed(ty, bytes)?;
        tensor.blob = Some(BlobRef { file: blob.file_name.clone(), offset: blob.offset });
        Ok(Const::Tensor(tensor))
    }
}

fn static_type(ty: &Type) -> Result<StaticType, Fault> {
    ty.tensor()
        .and_then(|t| t.to_static())
        .ok_or_else(|| Fault::new("a constant whose type is a tensor of fixed shape", ty.to_string()))
}

/// A constant from bytes that already are as [`TensorConst`] keeps them.
fn packed(ty: StaticType, bytes: Bytes) -> Result<TensorConst, Fault> {
    if ty.dtype == DType::String {
        return Err(Fault::new("strings", "bytes"));
    }
    TensorConst::new(ty, bytes).map_err(|e| match e {
        crate::ConstError::Length { ty, expected, found } => {
            Fault::new(format!("{expected} bytes for {ty}"), found.to_string())
        }
        other => Fault::new("a constant tensor", other.to_string()),
    })
}

fn tensor(data: Option<&TensorData>, ty: StaticType) -> Result<Const, Fault> {
    use DType as D;
    let n = ty.elements();
    let count = |found: usize| {
        if found == n { Ok(()) } else { Err(Fault::new(format!("{n} elements for {ty}"), found.to_string())) }
    };
    let bytes: Bytes = match (data, ty.dtype) {
        (Some(TensorData::Strings(s)), D::String) => {
            count(s.values.len())?;
            return Ok(Const::texts(ty.shape, s.values.clone()));
        }
        (None, D::String) if n == 0 => return Ok(Const::texts(ty.shape, Vec::new())),
        (None, _) if n == 0 => Bytes::new(),
        (Some(TensorData::Bytes(b)), D::Bool) if b.values.iter().any(|&b| b > 1) => {
            return Err(Fault::new("truth values of 0 and 1", "others"));
        }
        (Some(TensorData::Bytes(b)), dtype) if dtype != D::String => b.values.clone(),
        (Some(TensorData::Floats(v)), D::F32) => {
            count(v.values.len())?;
            v.values.iter().flat_map(|v| v.to_le_bytes()).collect()
        }
        (Some(TensorData::Doubles(v)), D::F64) => {
            count(v.values.len())?;
            v.values.iter().flat_map(|v| v.to_le_bytes()).collect()
        }
        (Some(TensorData::Bools(v)), D::Bool) => {
            count(v.values.len())?;
            v.values.iter().map(|&v| u8::from(v)).collect()
        }
        (Some(TensorData::LongInts(v)), D::I64 | D::U64) => {
            count(v.values.len())?;
            v.values.iter().flat_map(|v| v.to_le_bytes()).collect()
        }
        (Some(TensorData::Ints(v)), D::I8 | D::U8 | D::I16 | D::U16 | D::I32 | D::U32) => {
            count(v.values.len())?;
            let mut bytes = Vec::with_capacity(n * ty.dtype.bits() / 8);
            for &v in &v.values {
                // As the element type reads the low bits; what they leave out must be its sign.
                let width = ty.dtype.bits() / 8;
                let fits = match ty.dtype {
                    D::I8 => i8::try_from(v).is_ok(),
                    D::U8 => u8::try_from(v).is_ok(),
                    D::I16 => i16::try_from(v).is_ok(),
                    D::U16 => u16::try_from(v).is_ok(),
                    _ => true,
                };
                if !fits {
                    return Err(Fault::new(format!("elements of {}", ty.dtype), v.to_string()));
                }
                bytes.extend_from_slice(&v.to_le_bytes()[..width]);
            }
            bytes.into()
        }
        (data, _) => {
            return Err(Fault::new(
                format!("the elements of {ty}"),
                match data {
                    None => "none",
                    Some(TensorData::Floats(_)) => "fp32 elements",
                    Some(TensorData::Ints(_)) => "int32 elements",
                    Some(TensorData::Bools(_)) => "truth values",
                    Some(TensorData::Strings(_)) => "strings",
                    Some(TensorData::LongInts(_)) => "int64 elements",
                    Some(TensorData::Doubles(_)) => "fp64 elements",
                    Some(TensorData::Bytes(_)) => "bytes",
                },
            ));
        }
    };
    packed(ty, bytes).map(Const::Tensor)
}
