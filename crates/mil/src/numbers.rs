//! Numbers that describe a compressed constant, such as its scales: read from where they are stored, when they are wanted.

use crate::constant::TensorConst;
use crate::types::Class;

/// Numbers of a constant, row-major.
#[derive(Debug)]
pub struct Numbers(Kept);

#[derive(Debug)]
enum Kept {
    Values(Vec<f32>),
    Stored(TensorConst),
}

impl From<Vec<f32>> for Numbers {
    fn from(values: Vec<f32>) -> Self {
        Self(Kept::Values(values))
    }
}

impl From<TensorConst> for Numbers {
    /// The elements of a stored constant, which must not be text.
    fn from(stored: TensorConst) -> Self {
        assert!(stored.ty.dtype.class() != Class::String && stored.deferred.is_none(), "a constant of numbers");
        Self(Kept::Stored(stored))
    }
}

impl Numbers {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Kept::Values(v) => v.len(),
            Kept::Stored(t) => t.ty.elements(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn at(&self, index: usize) -> f32 {
        match &self.0 {
            Kept::Values(v) => v[index],
            Kept::Stored(t) if t.ty.dtype.is_float() => {
                t.floats(index..index + 1).next().expect("a range of one element")
            }
            Kept::Stored(t) => t.ints(index..index + 1).next().expect("a range of one element") as f32,
        }
    }

    /// All of them.
    #[must_use]
    pub fn to_vec(&self) -> Vec<f32> {
        match &self.0 {
            Kept::Values(v) => v.clone(),
            Kept::Stored(t) if t.ty.dtype.is_float() => t.floats(0..t.ty.elements()).collect(),
            Kept::Stored(t) => t.ints(0..t.ty.elements()).map(|v| v as f32).collect(),
        }
    }

    /// The constant that they are read from, if they are.
    #[must_use]
    pub fn stored(&self) -> Option<&TensorConst> {
        match &self.0 {
            Kept::Values(_) => None,
            Kept::Stored(t) => Some(t),
        }
    }

    /// Bytes that they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Kept::Values(v) => 4 * v.len(),
            Kept::Stored(t) => t.bytes.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Const, DType};

    #[test]
    fn stored_numbers_are_the_values() {
        let values = [1.0, -2.5, 8.0];
        let floats = Const::floats(DType::F16, &[3], &values);
        let ints = Const::ints(DType::I4, &[3], &[1, -2, 7]);
        for (numbers, expected) in [
            (Numbers::from(values.to_vec()), values),
            (Numbers::from(floats.tensor().unwrap().clone()), values),
            (Numbers::from(ints.tensor().unwrap().clone()), [1.0, -2.0, 7.0]),
        ] {
            assert_eq!((numbers.len(), numbers.to_vec()), (3, expected.to_vec()));
            assert_eq!([0, 1, 2].map(|i| numbers.at(i)), expected);
        }
        assert_eq!(Numbers::from(floats.tensor().unwrap().clone()).bytes(), 6);
    }
}
