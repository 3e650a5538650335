//! Broadcasting: axes are aligned at the end, and an axis of extent 1 stretches.

use crate::op::OpError;
use crate::types::Shape;

/// The shape that two shapes broadcast to.
///
/// # Errors
/// If an axis differs and neither extent is 1.
pub fn broadcast(a: &[usize], b: &[usize]) -> Result<Shape, OpError> {
    let rank = a.len().max(b.len());
    (0..rank)
        .map(|i| {
            let x = (i + a.len()).checked_sub(rank).map_or(1, |i| a[i]);
            let y = (i + b.len()).checked_sub(rank).map_or(1, |i| b[i]);
            match (x, y) {
                (1, n) | (n, 1) => Ok(n),
                (x, y) if x == y => Ok(x),
                _ => Err(OpError::mismatch("shapes that broadcast", format!("{a:?} and {b:?}"))),
            }
        })
        .collect()
}

/// Calls `f(output index, index in a, index in b)` for each element of `out`, which `a` and `b` broadcast to, in row-major
/// order.
pub fn zip(out: &[usize], a: &[usize], b: &[usize], mut f: impl FnMut(usize, usize, usize)) {
    let n: usize = out.iter().product();
    if n == 0 {
        return;
    }
    if a == out && b == out {
        (0..n).for_each(|i| f(i, i, i));
        return;
    }
    let (sa, sb) = (strides(out, a), strides(out, b));
    let mut index: Shape = Shape::from_elem(0, out.len());
    let (mut ia, mut ib) = (0, 0);
    for i in 0..n {
        f(i, ia, ib);
        for axis in (0..out.len()).rev() {
            index[axis] += 1;
            ia += sa[axis];
            ib += sb[axis];
            if index[axis] < out[axis] {
                break;
            }
            ia -= sa[axis] * out[axis];
            ib -= sb[axis] * out[axis];
            index[axis] = 0;
        }
    }
}

/// Strides in elements of `shape` seen as `out`: 0 along stretched axes.
#[must_use]
pub fn strides(out: &[usize], shape: &[usize]) -> Shape {
    let mut all = Shape::from_elem(0, out.len());
    let mut stride = 1;
    for i in (0..shape.len()).rev() {
        if shape[i] != 1 {
            all[i + out.len() - shape.len()] = stride;
        }
        stride *= shape[i];
    }
    all
}

/// Row-major strides in elements.
#[must_use]
pub fn row_major(shape: &[usize]) -> Shape {
    let mut all = Shape::from_elem(1, shape.len());
    for i in (1..shape.len()).rev() {
        all[i - 1] = all[i] * shape[i];
    }
    all
}
