//! Affine quantization by one scale and zero point, or by one for each index along an axis.

use super::channels;
use super::elementwise::expect_float;
use crate::op::{OpError, Operands};
use crate::tensor::Data;

/// Checks that the quantized tensor (parameter 0) is of integers.
///
/// # Errors
/// If it is not.
pub fn expect_quantized(x: &dyn Operands) -> Result<(), OpError> {
    if x.dtype(0).is_int() { Ok(()) } else { Err(x.bad(0, "a tensor of integers", x.dtype(0))) }
}

/// Which parameters of an operation are what; the quantized or to be quantized tensor is parameter 0.
#[derive(Clone, Copy, Debug)]
pub struct Affine {
    /// The scale: floating, one number or one for each index.
    pub scale: usize,
    /// The zero point, 0 if left out: likewise.
    pub zero_point: usize,
    /// The axis that vectors go along.
    pub axis: usize,
}

impl Affine {
    /// The axis, if one was given.
    ///
    /// # Errors
    /// If it is not known or out of range.
    fn axis(self, x: &dyn Operands) -> Result<Option<usize>, OpError> {
        if x.has(self.axis) { x.axis(self.axis, x.shape(0).len()).map(Some) } else { Ok(None) }
    }

    /// Checks shapes and element types of scale and zero point.
    ///
    /// # Errors
    /// If they do not fit the tensor.
    pub fn check(self, x: &dyn Operands) -> Result<(), OpError> {
        let axis = self.axis(x)?;
        expect_float(x, self.scale)?;
        for param in [self.scale, self.zero_point].into_iter().filter(|&p| x.has(p)) {
            let (dtype, shape) = x.ty_at(param, 0);
            let fits = match (shape, axis) {
                ([], _) => true,
                (&[n], Some(axis)) => n == x.shape(0)[axis],
                _ => false,
            };
            if !fits || !(dtype.is_float() || dtype.is_int()) {
                return Err(x.bad(param, "one number, or a vector as long as the tensor along `axis`", x.ty(param)));
            }
        }
        Ok(())
    }

    /// Calls `f` with scale, zero point and elements of each stretch of the tensor that shares them.
    ///
    /// # Errors
    /// If scale, zero point or axis are not known.
    pub fn for_each(
        self,
        x: &dyn Operands,
        mut f: impl FnMut(f32, f32, std::ops::Range<usize>),
    ) -> Result<(), OpError> {
        let scales = x.f32s(self.scale)?;
        let zeros = if x.has(self.zero_point) { x.data(self.zero_point)? } else { Data::F32(&[0.0]) };
        let scalars =
            x.shape(self.scale).is_empty() && (!x.has(self.zero_point) || x.shape(self.zero_point).is_empty());
        let axis = if scalars { None } else { self.axis(x)? };
        channels::for_each(x.shape(0), axis, |i, range| {
            let scale = if scales.len() == 1 { scales[0] } else { scales[i] };
            let zero = match zeros {
                Data::F32(z) => z[if z.len() == 1 { 0 } else { i }],
                Data::I32(z) => z[if z.len() == 1 { 0 } else { i }] as f32,
                Data::Bool(_) => 0.0,
            };
            f(scale, zero, range);
        });
        Ok(())
    }

    /// Computes `scale · (x − zero point)`.
    ///
    /// # Errors
    /// If an operand is not known.
    pub fn dequantize(self, x: &dyn Operands, out: &mut [f32]) -> Result<(), OpError> {
        let data = x.i32s(0)?;
        self.for_each(x, |scale, zero, range| {
            for (r, &q) in out[range.clone()].iter_mut().zip(&data[range]) {
                *r = scale * (q as f32 - zero);
            }
        })
    }
}
