//! Tensors of numbers as programs compute with them.

use crate::types::{Class, DType, StaticType};

/// The elements of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Buffer {
    /// Floating elements of any declared width.
    F32(Vec<f32>),
    /// Integer elements of any declared width.
    I32(Vec<i32>),
    /// Truth values.
    Bool(Vec<bool>),
}

impl Buffer {
    /// A buffer of `len` zeros for elements of `class`.
    ///
    /// # Panics
    /// If the class is text.
    #[must_use]
    pub fn zeros(class: Class, len: usize) -> Self {
        match class {
            Class::Float => Buffer::F32(vec![0.0; len]),
            Class::Int => Buffer::I32(vec![0; len]),
            Class::Bool => Buffer::Bool(vec![false; len]),
            Class::String => panic!("text is never computed"),
        }
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Buffer::F32(v) => v.len(),
            Buffer::I32(v) => v.len(),
            Buffer::Bool(v) => v.len(),
        }
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements `..len`, borrowed.
    #[must_use]
    pub fn view(&self, len: usize) -> Data<'_> {
        match self {
            Buffer::F32(v) => Data::F32(&v[..len]),
            Buffer::I32(v) => Data::I32(&v[..len]),
            Buffer::Bool(v) => Data::Bool(&v[..len]),
        }
    }

    /// The elements `..len`, borrowed for writing.
    #[must_use]
    pub fn view_mut(&mut self, len: usize) -> DataMut<'_> {
        match self {
            Buffer::F32(v) => DataMut::F32(&mut v[..len]),
            Buffer::I32(v) => DataMut::I32(&mut v[..len]),
            Buffer::Bool(v) => DataMut::Bool(&mut v[..len]),
        }
    }
}

/// Borrowed elements, row-major and without gaps.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// Floating elements.
    F32(&'a [f32]),
    /// Integer elements.
    I32(&'a [i32]),
    /// Truth values.
    Bool(&'a [bool]),
}

/// Elements borrowed for writing, row-major and without gaps.
#[derive(Debug)]
pub enum DataMut<'a> {
    /// Floating elements.
    F32(&'a mut [f32]),
    /// Integer elements.
    I32(&'a mut [i32]),
    /// Truth values.
    Bool(&'a mut [bool]),
}

/// A tensor with its elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Element type and shape.
    pub ty: StaticType,
    /// The elements, row-major.
    pub data: Buffer,
}

impl Tensor {
    /// A tensor of zeros.
    #[must_use]
    pub fn zeros(ty: StaticType) -> Self {
        let data = Buffer::zeros(ty.dtype.class(), ty.elements());
        Self { ty, data }
    }

    /// A floating tensor.
    ///
    /// # Panics
    /// If the lengths disagree or the type is not floating.
    #[must_use]
    pub fn floats(dtype: DType, shape: &[usize], values: &[f32]) -> Self {
        let ty = StaticType::new(dtype, shape);
        assert!(dtype.is_float() && ty.elements() == values.len(), "{ty} from {} floats", values.len());
        Self { ty, data: Buffer::F32(values.to_vec()) }
    }

    /// An integer tensor.
    ///
    /// # Panics
    /// If the lengths disagree or the type is not an integer type.
    #[must_use]
    pub fn ints(dtype: DType, shape: &[usize], values: &[i32]) -> Self {
        let ty = StaticType::new(dtype, shape);
        assert!(dtype.is_int() && ty.elements() == values.len(), "{ty} from {} integers", values.len());
        Self { ty, data: Buffer::I32(values.to_vec()) }
    }

    /// A tensor of truth values.
    ///
    /// # Panics
    /// If the lengths disagree.
    #[must_use]
    pub fn bools(shape: &[usize], values: &[bool]) -> Self {
        let ty = StaticType::new(DType::Bool, shape);
        assert_eq!(ty.elements(), values.len(), "as many values as elements");
        Self { ty, data: Buffer::Bool(values.to_vec()) }
    }

    /// The floating elements, if it is a floating tensor.
    #[must_use]
    pub fn as_f32(&self) -> Option<&[f32]> {
        match &self.data {
            Buffer::F32(v) => Some(v),
            _ => None,
        }
    }

    /// The integer elements, if it is an integer tensor.
    #[must_use]
    pub fn as_i32(&self) -> Option<&[i32]> {
        match &self.data {
            Buffer::I32(v) => Some(v),
            _ => None,
        }
    }

    /// The truth values, if it is a tensor of them.
    #[must_use]
    pub fn as_bool(&self) -> Option<&[bool]> {
        match &self.data {
            Buffer::Bool(v) => Some(v),
            _ => None,
        }
    }
}
