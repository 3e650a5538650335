//! Constants: in the message or in the weight file.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use anemone_package::BlobType;
use anemone_package::proto::mil::{self, ImmediateKind, TensorData};

use super::{Encoder, types};
use crate::constant::{Const, Deferred, TensorConst};
use crate::error::{Fault, MilError};
use crate::place::Place;
use crate::types::{DType, Type};
use crate::wire;

/// Tensors of this many elements and more go to the weight file, where it has their type.
const BLOB_ELEMENTS: usize = 10;

/// Where constants went that are known to be the same without a look at their elements: the same bytes in memory, or the
/// same maker. (The writer recognizes equal content.)
#[derive(Default)]
pub(super) struct Stored {
    bytes: HashMap<(usize, usize, DType), u64>,
    /// With the maker, which keeps its address from being used again.
    made: HashMap<usize, (Arc<dyn Deferred>, DType, u64)>,
}

impl Encoder<'_> {
    pub(super) fn constant(&mut self, c: &Const, place: &dyn Fn() -> Place) -> Result<mil::Value, MilError> {
        let immediate = match c {
            Const::Tensor(t) => return self.tensor(t, place),
            Const::List(_, items) => ImmediateKind::List(mil::ListValue { values: self.constants(items, place)? }),
            Const::Tuple(items) => ImmediateKind::Tuple(mil::TupleValue { values: self.constants(items, place)? }),
            Const::Dictionary(_, _, entries) => {
                let mut values = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    let (key, value) = (Some(self.constant(key, place)?), Some(self.constant(value, place)?));
                    values.push(mil::KeyValuePair { key, value });
                }
                ImmediateKind::Dictionary(mil::DictionaryValue { values })
            }
        };
        Ok(value(&c.ty(), immediate_value(immediate)))
    }

    fn constants(&mut self, all: &[Const], place: &dyn Fn() -> Place) -> Result<Vec<mil::Value>, MilError> {
        all.iter().map(|c| self.constant(c, place)).collect()
    }

    fn tensor(&mut self, t: &TensorConst, place: &dyn Fn() -> Place) -> Result<mil::Value, MilError> {
        let ty = Type::Tensor((&t.ty).into());
        let blob = self.blob_type(t.ty.dtype);
        if let (Some(blob), true) = (blob, t.ty.elements() >= BLOB_ELEMENTS) {
            let offset = match &t.deferred {
                Some(maker) => self.make(t, maker, blob, place)?,
                None => self.store(t, blob)?,
            };
            let file_name = anemone_package::WEIGHT_FILE.to_owned();
            return Ok(value(&ty, mil::ValueKind::BlobFileValue(mil::BlobFileValue { file_name, offset })));
        }
        let data = match &t.deferred {
            None => immediate(t),
            Some(maker) => {
                let mut bytes = Vec::new();
                let made = maker.write(&mut |piece| {
                    bytes.extend_from_slice(piece);
                    Ok(())
                });
                made.map_err(|source| MilError::Elements { place: place(), source })?;
                let t = TensorConst::new(t.ty.clone(), bytes.into())
                    .map_err(|e| Fault::new("as many bytes as the type asks for", e.to_string()).at(place()))?;
                immediate(&t)
            }
        };
        let tensor = ImmediateKind::Tensor(mil::TensorValue { value: Some(data) });
        Ok(value(&ty, immediate_value(tensor)))
    }

    /// The type of the weight file's blobs for this element type, if it may be used.
    fn blob_type(&self, dtype: DType) -> Option<BlobType> {
        let since_9 = matches!(dtype, DType::I16 | DType::U16 | DType::I32 | DType::U32);
        if since_9 && self.specification_version < 9 { None } else { wire::blob_type(dtype) }
    }

    fn store(&mut self, t: &TensorConst, blob: BlobType) -> Result<u64, MilError> {
        let key = (t.bytes.as_ptr() as usize, t.bytes.len(), t.ty.dtype);
        if let Some(offset) = self.stored.bytes.get(&key) {
            return Ok(*offset);
        }
        let offset = self.writer.add_blob(blob, &t.bytes, padding(t))?;
        self.stored.bytes.insert(key, offset);
        Ok(offset)
    }

    fn make(
        &mut self,
        t: &TensorConst,
        maker: &Arc<dyn Deferred>,
        blob: BlobType,
        place: &dyn Fn() -> Place,
    ) -> Result<u64, MilError> {
        let key = Arc::as_ptr(maker).cast::<()>() as usize;
        if let Some((_, dtype, offset)) = self.stored.made.get(&key)
            && *dtype == t.ty.dtype
        {
            return Ok(*offset);
        }
        let mut writer = self.writer.blob_writer(blob, padding(t))?;
        let mut length = 0;
        let made = maker.write(&mut |piece| {
            length += piece.len();
            writer.write_all(piece)
        });
        made.map_err(|source| MilError::Elements { place: place(), source })?;
        let expected = t.ty.dtype.packed_bytes(t.ty.elements());
        if expected != Some(length) {
            let expected =
                expected.map_or("a tensor that fits in memory".into(), |n| format!("{n} bytes for {}", t.ty));
            return Err(Fault::new(expected, length.to_string()).at(place()));
        }
        let offset = writer.finish()?;
        self.stored.made.insert(key, (Arc::clone(maker), t.ty.dtype, offset));
        Ok(offset)
    }
}

/// Unused bits after the last element.
fn padding(t: &TensorConst) -> u64 {
    ((t.ty.elements() * t.ty.dtype.bits()).wrapping_neg() % 8) as u64
}

fn value(ty: &Type, kind: mil::ValueKind) -> mil::Value {
    mil::Value { doc_string: String::new(), r#type: Some(types::ty(ty)), value: Some(kind) }
}

fn immediate_value(kind: ImmediateKind) -> mil::ValueKind {
    mil::ValueKind::ImmediateValue(mil::ImmediateValue { value: Some(kind) })
}

/// The elements in the field of the message that is for their type.
fn immediate(t: &TensorConst) -> TensorData {
    let n = t.ty.elements();
    match t.ty.dtype {
        DType::String => TensorData::Strings(mil::RepeatedStrings { values: t.strings.clone() }),
        DType::Bool => TensorData::Bools(mil::RepeatedBools { values: t.bytes.iter().map(|&b| b != 0).collect() }),
        DType::F32 => TensorData::Floats(mil::RepeatedFloats {
            values: t.bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        }),
        DType::F64 => TensorData::Doubles(mil::RepeatedDoubles {
            values: t.bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
        }),
        DType::I16 | DType::U16 | DType::I32 => {
            TensorData::Ints(mil::RepeatedInts { values: t.ints(0..n).map(|v| v as i32).collect() })
        }
        DType::I64 | DType::U64 => TensorData::LongInts(mil::RepeatedLongInts { values: t.ints(0..n).collect() }),
        _ => TensorData::Bytes(mil::RepeatedBytes { values: t.bytes.clone() }),
    }
}
