//! Parameters that hold one number for each index along one axis of `x`, such as channels.

use std::ops::Range;

use super::elementwise::expect_float;
use crate::op::{OpError, Operands};

/// Axis of channels in (batch, channels, space …).
pub const CHANNEL: usize = 1;

/// The number of channels of `x` (parameter 0), which is floating and of shape (batch, channels, space …).
///
/// # Errors
/// If `x` is not that.
pub fn count(x: &dyn Operands) -> Result<usize, OpError> {
    expect_float(x, 0)?;
    match x.shape(0) {
        [_, channels, _, ..] => Ok(*channels),
        other => Err(x.bad(0, "a tensor of batch, channels and space: rank 3 or more", other)),
    }
}

/// Checks that a parameter, if it was given, holds one floating number for each of `n` channels.
///
/// # Errors
/// If it does not.
pub fn expect(x: &dyn Operands, param: usize, n: usize) -> Result<(), OpError> {
    if !x.has(param) {
        return Ok(());
    }
    expect_float(x, param)?;
    if x.shape(param) == [n] { Ok(()) } else { Err(x.bad(param, format!("shape [{n}]"), x.shape(param))) }
}

/// The numbers of a parameter, if it was given.
///
/// # Errors
/// If they are not floating or not known.
pub fn given(x: &dyn Operands, param: usize) -> Result<Option<&[f32]>, OpError> {
    if x.has(param) { x.f32s(param).map(Some) } else { Ok(None) }
}

/// Calls `f` with the index along `axis` and the elements of each stretch of a tensor that has one such index, in row-major
/// order. Without an axis, the whole tensor has index 0.
pub fn for_each(shape: &[usize], axis: Option<usize>, mut f: impl FnMut(usize, Range<usize>)) {
    if shape.contains(&0) {
        return;
    }
    let n: usize = shape.iter().product();
    let (len, indices) = axis.map_or((n, 1), |a| (shape[a + 1..].iter().product(), shape[a]));
    (0..n / len).for_each(|i| f(i % indices, i * len..(i + 1) * len));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(shape: &[usize], axis: Option<usize>) -> Vec<(usize, Range<usize>)> {
        let mut all = Vec::new();
        for_each(shape, axis, |i, range| all.push((i, range)));
        all
    }

    #[test]
    fn stretches_follow_the_axis() {
        assert_eq!(all(&[2, 2, 3], Some(1)), [(0, 0..3), (1, 3..6), (0, 6..9), (1, 9..12)]);
        assert_eq!(all(&[2, 3], Some(0)), [(0, 0..3), (1, 3..6)]);
        assert_eq!(all(&[2], Some(0)), [(0, 0..1), (1, 1..2)]);
        assert_eq!(all(&[2, 3], None), [(0, 0..6)]);
        assert_eq!(all(&[2, 0, 3], Some(1)), []);
    }
}
