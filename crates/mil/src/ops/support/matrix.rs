//! Constant matrices, packed once for this machine.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use anemone_kernels::Isa;
use anemone_kernels::buffer::Buffer;
use anemone_kernels::linear::{
    BlockShape, Linear, LinearF16, LinearF32, LinearLut, LinearQ4, LinearQ8, LutShape, ScaleType,
};

use crate::lower::PackCache;
use crate::numbers::Numbers;
use crate::packed::{Form, Packed};
use crate::types::DType;

/// Whether a half float holds the number.
fn is_half(v: f32) -> bool {
    half::f16::from_f32(v).to_f32() == v || v.is_nan()
}

/// A digest of all that a packed matrix depends on besides the stored integers or floats. What lies in a file of the package is
/// known by its place there, and not read.
fn digest(packed: &Packed, cache: &PackCache) -> u64 {
    let mut h = DefaultHasher::new();
    (packed.ty().dtype, &packed.ty().shape).hash(&mut h);
    // There may be millions of scales: a multiplication for each.
    let mix = |h: u64, v: &f32| (h.rotate_left(5) ^ u64::from(v.to_bits())).wrapping_mul(0x517c_c1b7_2722_0a95);
    let floats = |v: &[f32]| v.iter().fold(v.len() as u64, mix);
    let numbers = |v: &Numbers| {
        let place = v.stored().and_then(|t| Some((t.ty.dtype, cache.place(&t.bytes)?)));
        let read = if place.is_none() { floats(&v.to_vec()) } else { 0 };
        (v.len(), place, read)
    };
    match packed {
        Packed::Plain(_) => {}
        Packed::Compressed(c) => match c.form() {
            Form::Scaled { data, blocks, scale, offset } => {
                (data.ty.dtype, blocks, numbers(scale), offset.map(numbers)).hash(&mut h);
            }
            Form::Palette { indices, groups, tables } => {
                (indices.ty.dtype, groups, floats(tables)).hash(&mut h);
            }
            Form::Other => {}
        },
    }
    h.finish()
}

/// What `make` makes of a constant, or what it made before: of the same constant, for the same `rest`.
pub(super) fn kept<T: std::any::Any + Send + Sync>(
    packed: &Packed,
    rest: u64,
    cache: &PackCache,
    make: impl FnOnce() -> T,
) -> Arc<T> {
    let source = match packed {
        Packed::Plain(t) => &t.bytes,
        Packed::Compressed(c) => match c.form() {
            Form::Scaled { data, .. } => &data.bytes,
            Form::Palette { indices, .. } => &indices.bytes,
            Form::Other => return Arc::new(make()),
        },
    };
    cache.get(source, digest(packed, cache).rotate_left(2) ^ rest, make)
}

/// A matrix (rows, columns) packed for the kernels.
#[derive(Debug)]
pub struct Matrix {
    bytes: Buffer,
    kind: Kind,
    isa: Isa,
}

#[derive(Debug)]
enum Kind {
    F32(usize, usize),
    F16(usize, usize),
    Q8(BlockShape, bool),
    Q4(BlockShape, bool),
    Lut(LutShape),
}

impl Matrix {
    /// Packs a constant of rank 2 (further axes of extent 1 do not matter), or takes it from the cache.
    #[must_use]
    pub fn new(packed: &Packed, cache: &PackCache) -> Option<Arc<Self>> {
        let &[rows, k, ref ones @ ..] = packed.ty().shape.as_slice() else { return None };
        if ones.iter().any(|&n| n != 1) || rows == 0 || k == 0 || !packed.ty().dtype.is_float() {
            return None;
        }
        match packed {
            Packed::Plain(t) => Some(cache.get(&t.bytes, digest(packed, cache), || Self::dense(packed, rows, k))),
            Packed::Compressed(c) => {
                let source = match c.form() {
                    Form::Scaled { data, .. } => data,
                    Form::Palette { indices, .. } => indices,
                    Form::Other => return Some(Arc::new(Self::dense(packed, rows, k))),
                };
                let make = || Self::integer(c.form(), rows, k).unwrap_or_else(|| Self::dense(packed, rows, k));
                Some(cache.get(&source.bytes, digest(packed, cache), make))
            }
        }
    }

    /// Packs the transpose of a constant of rank 2, in floats, or takes it from the cache.
    #[must_use]
    pub fn turned(packed: &Packed, cache: &PackCache) -> Option<Arc<Self>> {
        let &[k, rows] = packed.ty().shape.as_slice() else { return None };
        if rows == 0 || k == 0 || !packed.ty().dtype.is_float() {
            return None;
        }
        let make = || {
            let mut stored = vec![0.0; rows * k];
            packed.decode(0..rows * k, &mut stored);
            let column = |r: usize| stored[r..].iter().step_by(rows).copied();
            Self::floats((0..rows).flat_map(column).collect(), packed.ty().dtype, rows, k)
        };
        let source = match packed {
            Packed::Plain(t) => &t.bytes,
            Packed::Compressed(c) => match c.form() {
                Form::Scaled { data, .. } => &data.bytes,
                Form::Palette { indices, .. } => &indices.bytes,
                Form::Other => return Some(Arc::new(make())),
            },
        };
        // Not what the same constant gives as it is.
        Some(cache.get(source, !digest(packed, cache), make))
    }

    /// Packs a constant of rank 2 or more in floats, all axes but the first as one, or takes it from the cache.
    #[must_use]
    pub fn flattened(packed: &Packed, cache: &PackCache) -> Option<Arc<Self>> {
        let (&rows, rest) = packed.ty().shape.split_first()?;
        let k = rest.iter().product::<usize>();
        if rows == 0 || k == 0 || !packed.ty().dtype.is_float() {
            return None;
        }
        let source = match packed {
            Packed::Plain(t) => &t.bytes,
            Packed::Compressed(c) => match c.form() {
                Form::Scaled { data, .. } => &data.bytes,
                Form::Palette { indices, .. } => &indices.bytes,
                Form::Other => return Some(Arc::new(Self::dense(packed, rows, k))),
            },
        };
        // Not what the same constant gives as it is, nor turned.
        Some(cache.get(source, digest(packed, cache).rotate_left(1), || Self::dense(packed, rows, k)))
    }

    /// In the floating type that holds every element.
    fn dense(packed: &Packed, rows: usize, k: usize) -> Self {
        if let Packed::Plain(t) = packed
            && t.ty.dtype == DType::F16
            && t.deferred.is_none()
        {
            let bytes = Buffer::filled(LinearF16::packed_len(rows, k), |into| {
                let halves: Vec<u16> = t.bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b)).collect();
                LinearF16::pack(rows, k, &halves, into);
            });
            return Self { bytes, kind: Kind::F16(rows, k), isa: Isa::detect() };
        }
        let mut values = vec![0.0; rows * k];
        packed.decode(0..rows * k, &mut values);
        Self::floats(values, packed.ty().dtype, rows, k)
    }

    /// Half floats if all of them are, else single ones.
    fn floats(values: Vec<f32>, dtype: DType, rows: usize, k: usize) -> Self {
        let isa = Isa::detect();
        if dtype == DType::F16 && values.iter().all(|&v| is_half(v)) {
            let halves: Vec<u16> = values.iter().map(|&v| half::f16::from_f32(v).to_bits()).collect();
            Self { bytes: LinearF16::packed(rows, k, &halves), kind: Kind::F16(rows, k), isa }
        } else {
            Self { bytes: LinearF32::packed(rows, k, &values), kind: Kind::F32(rows, k), isa }
        }
    }

    /// As the integers that it is stored as; nothing where no kernel takes this make.
    fn integer(form: Form<'_>, rows: usize, k: usize) -> Option<Self> {
        let isa = Isa::detect();
        match form {
            Form::Scaled { data, blocks, scale, offset } => {
                let [row_blocks, column_blocks, ..] = *blocks else { return None };
                let offset = offset.map(Numbers::to_vec).filter(|o| o.iter().any(|&z| z != 0.0));
                // Offsets are kept as half floats, of integers that are moved up until they have no sign.
                let up = match data.ty.dtype {
                    DType::I8 => 128.0,
                    DType::I4 => 8.0,
                    _ => 0.0,
                };
                if offset.as_ref().is_some_and(|o| o.iter().any(|&z| !is_half(z + up) || z + up - up != z)) {
                    return None;
                }
                let stored_as_halves = scale.stored().is_some_and(|t| t.ty.dtype == DType::F16);
                let halves = stored_as_halves || scale.to_vec().iter().all(|&s| is_half(s));
                let shape = BlockShape {
                    rows,
                    k,
                    block: k / column_blocks,
                    scale: if halves { ScaleType::F16 } else { ScaleType::F32 },
                    offsets: offset.is_some(),
                };
                if !shape.supported() {
                    return None;
                }
                // The kernels have a scale for each row.
                let each_row = |v: &[f32]| -> Vec<f32> {
                    let per = rows / row_blocks;
                    (0..rows).flat_map(|r| v[r / per * column_blocks..][..column_blocks].iter().copied()).collect()
                };
                // Not read where the cache has the packed matrix already.
                let rows = || (each_row(&scale.to_vec()), offset.as_ref().map(|o| each_row(o)));
                let signed = matches!(data.ty.dtype, DType::I8 | DType::I4);
                match data.ty.dtype {
                    DType::I8 | DType::U8 => {
                        let bytes = Buffer::filled(LinearQ8::packed_len(shape), |into| {
                            let (scale, offset) = rows();
                            LinearQ8::pack(shape, signed, &data.bytes, &scale, offset.as_deref(), into);
                        });
                        Some(Self { bytes, kind: Kind::Q8(shape, signed), isa })
                    }
                    DType::I4 | DType::U4 => {
                        let bytes = Buffer::filled(LinearQ4::packed_len(shape), |into| {
                            let (scale, offset) = rows();
                            LinearQ4::pack(shape, signed, &data.bytes, &scale, offset.as_deref(), into);
                        });
                        Some(Self { bytes, kind: Kind::Q4(shape, signed), isa })
                    }
                    _ => None,
                }
            }
            Form::Palette { indices, groups, tables } => {
                let [row_groups, col_groups, ..] = *groups else { return None };
                let shape = LutShape { rows, k, bits: indices.ty.dtype.bits(), row_groups, col_groups };
                if !shape.supported() {
                    return None;
                }
                Some(Self { bytes: LinearLut::packed(shape, &indices.bytes, tables), kind: Kind::Lut(shape), isa })
            }
            Form::Other => None,
        }
    }

    /// The matrix as the kernels see it.
    #[must_use]
    pub fn view(&self) -> Linear<'_> {
        let bytes = &self.bytes;
        match self.kind {
            Kind::F32(rows, k) => Linear::F32(LinearF32::new(rows, k, bytes)),
            Kind::F16(rows, k) => Linear::F16(LinearF16::new(rows, k, bytes)),
            Kind::Q8(shape, signed) => Linear::Q8(LinearQ8::new(shape, signed, bytes)),
            Kind::Q4(shape, signed) => Linear::Q4(LinearQ4::new(shape, signed, bytes)),
            Kind::Lut(shape) => Linear::Lut(LinearLut::new(shape, bytes)),
        }
    }

    /// The instructions that it is packed for.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }
}
