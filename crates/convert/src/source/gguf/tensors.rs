//! The tensor list of a GGUF file.

use std::collections::HashMap;

use bytes::Bytes;

use super::cursor::Cursor;
use crate::dequantize::{self, Kind};
use crate::error::Result;

/// The longest tensor name. The format says 64 bytes; some tools write longer ones.
const MAX_NAME: usize = 1024;
/// The most dimensions (the format's own bound).
const MAX_DIMENSIONS: u32 = 4;

/// A tensor of the file.
#[derive(Debug, Clone)]
pub struct TensorInfo {
    /// The file's name for it.
    pub name: String,
    /// Row-major: the last dimension is contiguous. (The file lists them the other way round.)
    pub shape: Vec<usize>,
    /// The number of its type.
    pub code: u32,
    /// Where its bytes begin in its file.
    pub offset: u64,
    /// Its type and bytes; `None` if the type cannot be decoded, so that its length is not known.
    pub data: Option<(&'static Kind, Bytes)>,
}

impl TensorInfo {
    /// The name of its type, decodable or not.
    pub fn kind_name(&self) -> String {
        dequantize::name_of(self.code)
    }
}

/// The tensors of a file in the order of the file, with a look-up by name.
#[derive(Debug, Clone, Default)]
pub struct Tensors {
    list: Vec<TensorInfo>,
    by_name: HashMap<String, usize>,
}

impl Tensors {
    pub(super) fn read(cursor: &mut Cursor, count: u64, alignment: u64) -> Result<Self> {
        let mut tensors = Self::default();
        // Where each entry stands in the file, for errors found once the data's beginning is known.
        let mut places = Vec::new();
        for _ in 0..count {
            let at = cursor.offset();
            let info = read_info(cursor, alignment)?;
            if let Err(info) = tensors.insert(info) {
                return Err(cursor.error_at(at, format!("tensor {:?} occurs twice", info.name)));
            }
            places.push(at);
        }
        let data_start = (cursor.offset() as u64).next_multiple_of(alignment);
        for (info, at) in tensors.list.iter_mut().zip(places) {
            let stored = info.offset;
            let start = data_start.checked_add(stored).filter(|start| *start <= cursor.len() as u64);
            let Some(start) = start else {
                return Err(cursor.error_at(
                    at,
                    format!("tensor {:?} begins {stored} bytes into the data, past the end of the file", info.name),
                ));
            };
            info.offset = start;
            let Some(kind) = Kind::from_code(info.code) else { continue };
            let elements = element_count(&info.shape).expect("counted when the entry was read");
            let length = match info.shape.last() {
                Some(row) if !row.is_multiple_of(kind.block_len) => None,
                _ => kind.bytes_for(elements),
            };
            let Some(length) = length else {
                let block = kind.block_len;
                let problem =
                    format!("tensor {:?} of shape {:?}: rows of {kind} are blocks of {block}", info.name, info.shape);
                return Err(cursor.error_at(at, problem));
            };
            let range = usize::try_from(start).ok().and_then(|start| cursor.range(start, length));
            let Some(bytes) = range else {
                let left = cursor.len() as u64 - start;
                let problem = format!(
                    "tensor {:?} takes {length} bytes at {start}, but {left} are left; the file is cut short: \
                     download it again",
                    info.name
                );
                return Err(cursor.error_at(at, problem));
            };
            info.data = Some((kind, bytes));
        }
        Ok(tensors)
    }

    /// Adds a tensor; gives it back if the name is taken.
    pub(super) fn insert(&mut self, info: TensorInfo) -> std::result::Result<(), TensorInfo> {
        if self.by_name.contains_key(&info.name) {
            return Err(info);
        }
        self.by_name.insert(info.name.clone(), self.list.len());
        self.list.push(info);
        Ok(())
    }

    pub(super) fn into_list(self) -> Vec<TensorInfo> {
        self.list
    }

    /// The tensor that the file calls `name`.
    pub fn get(&self, name: &str) -> Option<&TensorInfo> {
        self.by_name.get(name).map(|&i| &self.list[i])
    }

    /// All tensors in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &TensorInfo> {
        self.list.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

fn read_info(cursor: &mut Cursor, alignment: u64) -> Result<TensorInfo> {
    let at = cursor.offset();
    let name = cursor.name(MAX_NAME, "tensor name")?;
    let dimensions = cursor.u32("number of dimensions")?;
    if dimensions > MAX_DIMENSIONS {
        return Err(
            cursor.error_at(at, format!("tensor {name:?} has {dimensions} dimensions; at most {MAX_DIMENSIONS}"))
        );
    }
    let mut shape = Vec::with_capacity(dimensions as usize);
    for _ in 0..dimensions {
        let length = cursor.count("dimension")?;
        match usize::try_from(length) {
            Ok(length) if length > 0 => shape.push(length),
            _ => return Err(cursor.error_at(at, format!("tensor {name:?} has a dimension of {length}"))),
        }
    }
    shape.reverse();
    if element_count(&shape).is_none() {
        return Err(cursor.error_at(at, format!("tensor {name:?} of shape {shape:?} has more elements than any file")));
    }
    let code = cursor.u32("tensor type")?;
    let offset = cursor.u64("tensor offset")?;
    if !offset.is_multiple_of(alignment) {
        return Err(
            cursor.error_at(at, format!("tensor {name:?} at offset {offset}, which is not aligned to {alignment}"))
        );
    }
    Ok(TensorInfo { name, shape, code, offset, data: None })
}

/// Elements of a shape, if they could be in memory at four bytes each.
fn element_count(shape: &[usize]) -> Option<usize> {
    let count = shape.iter().try_fold(1usize, |count, &length| count.checked_mul(length))?;
    count.checked_mul(4).map(|_| count)
}
