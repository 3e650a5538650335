//! Values as bytes, for what is kept on disk and read again by the same program: plans, and what they are made of.
//!
//! Nothing here is a format for others: what reads is what wrote, on the same machine, and whoever keeps such bytes checks
//! that before ([`Reader`] only makes sure that bad bytes are refused, and cost no more memory than they are long).

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::compressed::{Palettes, Scaled};
use crate::layout::Layout;
use crate::lower::PackCache;
use crate::numbers::Numbers;
use crate::op::{Op, Update};
use crate::packed::{Form, Packed};
use crate::program::ValueId;
use crate::tensor::{Buffer, Tensor};
use crate::types::{Class, DType, StaticType};
use crate::{TensorConst, fused, ops};

/// What can be kept. `None` means that a value cannot be written, or that the bytes are none of its.
pub trait Keep: Sized {
    /// Appends the value.
    fn put(&self, to: &mut Writer<'_>) -> Option<()>;
    /// Takes one off.
    fn get(from: &mut Reader<'_>) -> Option<Self>;
}

/// Bytes that values are appended to.
pub struct Writer<'a> {
    bytes: Vec<u8>,
    texts: HashMap<Arc<str>, u32>,
    /// What stands there for the files of constants.
    cache: &'a PackCache,
}

/// Bytes that values are taken off.
pub struct Reader<'a> {
    rest: &'a [u8],
    texts: Vec<Arc<str>>,
    cache: &'a PackCache,
    ops: HashMap<&'static str, &'static dyn Op>,
}

impl<'a> Writer<'a> {
    /// No bytes yet. Constants that lie in the files of `cache` are written as their place there.
    #[must_use]
    pub fn new(cache: &'a PackCache) -> Self {
        Self { bytes: Vec::new(), texts: HashMap::new(), cache }
    }

    /// What was written.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends a text that is written once.
    pub fn text(&mut self, text: &str) -> Option<()> {
        if let Some(&known) = self.texts.get(text) {
            return known.put(self);
        }
        let new = u32::try_from(self.texts.len()).ok()?;
        self.texts.insert(text.into(), new);
        new.put(self)?;
        text.as_bytes().to_vec().put(self)
    }
}

impl<'a> Reader<'a> {
    /// All bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8], cache: &'a PackCache) -> Self {
        let all = ops::ALL.iter().copied().chain(fused::ALL.iter().map(|fused| fused.op()));
        let ops = all.flat_map(|op| [Some(op), op.joined()]).flatten().map(|op| (op.name(), op)).collect();
        Self { rest: bytes, texts: Vec::new(), cache, ops }
    }

    /// Whether all was taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The text that was appended here.
    pub fn text(&mut self) -> Option<Arc<str>> {
        let index = u32::get(self)? as usize;
        if index == self.texts.len() {
            let text = String::from_utf8(Vec::get(self)?).ok()?;
            self.texts.push(text.into());
        }
        self.texts.get(index).cloned()
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// A number of elements, each of `size` bytes at least, that are still there.
    fn count(&mut self, size: usize) -> Option<usize> {
        let count = usize::get(self)?;
        (count <= self.rest.len() / size).then_some(count)
    }
}

/// Implements [`Keep`] for structs, field by field; those of a tuple have numbers.
#[macro_export]
macro_rules! keep_fields {
    ($($type:ty { $($field:tt),* $(,)? })*) => { $(
        impl $crate::kept::Keep for $type {
            fn put(&self, to: &mut $crate::kept::Writer<'_>) -> Option<()> {
                $( $crate::kept::Keep::put(&self.$field, to)?; )*
                Some(())
            }
            fn get(from: &mut $crate::kept::Reader<'_>) -> Option<Self> {
                Some(Self { $( $field: $crate::kept::Keep::get(from)? ),* })
            }
        }
    )* };
}

macro_rules! numbers {
    ($($type:ty)*) => { $(
        impl Keep for $type {
            fn put(&self, to: &mut Writer<'_>) -> Option<()> {
                to.bytes.extend(self.to_le_bytes());
                Some(())
            }
            fn get(from: &mut Reader<'_>) -> Option<Self> {
                Some(<$type>::from_le_bytes(from.take(size_of::<$type>())?.try_into().ok()?))
            }
        }
    )* };
}
numbers!(u8 u32 i32 i64 f32 u64);

impl Keep for usize {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        (*self as u64).put(to)
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        u64::get(from)?.try_into().ok()
    }
}

impl Keep for bool {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        u8::from(*self).put(to)
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        Some(u8::get(from)? != 0)
    }
}

/// Appends a list: how many there are, then each.
fn put_all<T: Keep>(all: &[T], to: &mut Writer<'_>) -> Option<()> {
    all.len().put(to)?;
    all.iter().try_for_each(|value| value.put(to))
}

/// Takes a list off.
fn get_all<T: Keep, All: FromIterator<T>>(from: &mut Reader<'_>) -> Option<All> {
    let count = from.count(1)?;
    // What is there at most, as long as elements are not larger than they are written.
    (0..count).map(|_| T::get(from)).collect()
}

impl<T: Keep> Keep for Vec<T> {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        put_all(self, to)
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        let mut all: Self = get_all(from)?;
        // It is kept for as long as the plan.
        all.shrink_to_fit();
        Some(all)
    }
}

impl<T: Keep, const N: usize> Keep for SmallVec<[T; N]> {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        put_all(self, to)
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        get_all(from)
    }
}

impl<T: Keep, const N: usize> Keep for [T; N] {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        self.iter().try_for_each(|value| value.put(to))
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        let all: Vec<T> = (0..N).map(|_| T::get(from)).collect::<Option<_>>()?;
        all.try_into().ok()
    }
}

impl<T: Keep> Keep for Option<T> {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        self.is_some().put(to)?;
        self.as_ref().map_or(Some(()), |value| value.put(to))
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        Some(if bool::get(from)? { Some(T::get(from)?) } else { None })
    }
}

impl<A: Keep, B: Keep> Keep for (A, B) {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        self.0.put(to)?;
        self.1.put(to)
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        Some((A::get(from)?, B::get(from)?))
    }
}

impl Keep for String {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        to.text(self)
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        Some(from.text()?.as_ref().into())
    }
}

impl Keep for Arc<str> {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        to.text(self)
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        from.text()
    }
}

impl Keep for &'static dyn Op {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        to.text(self.name())
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        let name = from.text()?;
        from.ops.get(&*name).copied()
    }
}

impl Keep for DType {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        u8::try_from(DType::ALL.iter().position(|dtype| dtype == self)?).ok()?.put(to)
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        DType::ALL.get(usize::from(u8::get(from)?)).copied()
    }
}

const CLASSES: [Class; 4] = [Class::Float, Class::Int, Class::Bool, Class::String];

impl Keep for Class {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        u8::try_from(CLASSES.iter().position(|class| class == self)?).ok()?.put(to)
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        CLASSES.get(usize::from(u8::get(from)?)).copied()
    }
}

keep_fields! {
    ValueId { 0 }
    Layout { offset, shape, strides }
    Update { target, source }
}

impl Keep for StaticType {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        self.dtype.put(to)?;
        self.shape.put(to)
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        let ty = Self { dtype: DType::get(from)?, shape: Keep::get(from)? };
        // Products of extents do not overflow.
        let count = ty.shape.iter().try_fold(1usize, |all, &n| all.checked_mul(n.max(1)))?;
        (count <= crate::decode::MAX_ELEMENTS).then_some(ty)
    }
}

impl Keep for Tensor {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        self.ty.put(to)?;
        match &self.data {
            Buffer::F32(all) => all.put(to),
            Buffer::I32(all) => all.put(to),
            Buffer::Bool(all) => all.put(to),
        }
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        let ty = StaticType::get(from)?;
        let data = match ty.dtype.class() {
            Class::Float => Buffer::F32(Keep::get(from)?),
            Class::Int => Buffer::I32(Keep::get(from)?),
            Class::Bool => Buffer::Bool(Keep::get(from)?),
            Class::String => return None,
        };
        (data.len() == ty.elements()).then_some(Self { ty, data })
    }
}

impl Keep for TensorConst {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        if self.deferred.is_some() || !self.strings.is_empty() {
            return None;
        }
        self.ty.put(to)?;
        let place = to.cache.place(&self.bytes);
        place.put(to)?;
        if place.is_none() { self.bytes.to_vec().put(to) } else { self.bytes.len().put(to) }
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        let ty = StaticType::get(from)?;
        let bytes = match <Option<(usize, usize)>>::get(from)? {
            Some((file, offset)) => from.cache.at(file, offset, usize::get(from)?)?,
            None => Bytes::from(Vec::get(from)?),
        };
        if ty.dtype == DType::String { None } else { Self::new(ty, bytes).ok() }
    }
}

impl Keep for Numbers {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        match self.stored() {
            Some(stored) => {
                true.put(to)?;
                stored.put(to)
            }
            None => {
                false.put(to)?;
                self.to_vec().put(to)
            }
        }
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        Some(if bool::get(from)? { TensorConst::get(from)?.into() } else { Vec::<f32>::get(from)?.into() })
    }
}

impl Keep for Packed {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        let compressed = match self {
            Packed::Plain(constant) => {
                0u8.put(to)?;
                return constant.put(to);
            }
            Packed::Compressed(compressed) => compressed,
        };
        let dtype = compressed.ty().dtype;
        match compressed.form() {
            Form::Scaled { data, blocks, scale, offset } => {
                1u8.put(to)?;
                dtype.put(to)?;
                data.put(to)?;
                blocks.to_vec().put(to)?;
                scale.put(to)?;
                offset.is_some().put(to)?;
                offset.map_or(Some(()), |offset| offset.put(to))
            }
            Form::Palette { indices, groups, tables } => {
                2u8.put(to)?;
                dtype.put(to)?;
                indices.put(to)?;
                groups.to_vec().put(to)?;
                tables.to_vec().put(to)
            }
            Form::Other => None,
        }
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        let kind = u8::get(from)?;
        if kind == 0 {
            return Some(Packed::Plain(TensorConst::get(from)?));
        }
        let (dtype, data, blocks) = (DType::get(from)?, TensorConst::get(from)?, Vec::<usize>::get(from)?);
        // How many blocks there are is multiplied.
        blocks.iter().try_fold(1usize, |all, &n| all.checked_mul(n))?;
        Some(Packed::Compressed(match kind {
            1 => Arc::new(Scaled::new(dtype, data, &blocks, Keep::get(from)?, Keep::get(from)?)?),
            2 => Arc::new(Palettes::new(dtype, data, &blocks, Keep::get(from)?)?),
            _ => return None,
        }))
    }
}
