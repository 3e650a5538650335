//! `einsum`: products along the third axis from the end of one tensor and the last of the other. Two equations are known, in
//! any letters: `nchw,nwhu->nchu` and `chw,whu->chu`. Axes `n` and `h` broadcast.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::broadcast::broadcast;
use crate::ops::support::dims;
use crate::ops::support::number::add_scaled;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Einsum;

const VALUES: usize = 0;
const EQUATION: usize = 1;

/// Whether `equation` is `pattern` in other letters.
fn same_equation(equation: &str, pattern: &str) -> bool {
    let letters = || equation.bytes().filter(|b| *b != b' ');
    let pairs = || letters().zip(pattern.bytes());
    letters().count() == pattern.len()
        && pairs().all(|(a, b)| a.is_ascii_alphabetic() == b.is_ascii_alphabetic())
        && pairs().all(|(a, b)| pairs().all(|(c, d)| (a == c) == (b == d)) && (b.is_ascii_alphabetic() || a == b))
}

/// Extents (n, a, h, b) of a value; n is 1 if it has rank 3.
fn extents(x: &dyn Operands, index: usize) -> [usize; 4] {
    match *x.ty_at(VALUES, index).1 {
        [n, a, h, b] => [n, a, h, b],
        [a, h, b] => [1, a, h, b],
        _ => [0; 4],
    }
}

impl Op for Einsum {
    fn name(&self) -> &'static str {
        "einsum"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::variadic("values"), Param::required("equation")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        if x.count(VALUES) != 2 {
            return Err(x.bad(VALUES, "two tensors", x.count(VALUES)));
        }
        let (mut ty, (other, b)) = (dims::numbers(x, VALUES)?, x.ty_at(VALUES, 1));
        if !ty.dtype.is_float() || other != ty.dtype || b.len() != ty.shape.len() {
            return Err(x.bad(VALUES, "two floating tensors of one type and rank", (ty, other, b)));
        }
        let equation = x.text_or(EQUATION, "")?;
        let pattern = if b.len() == 4 { "nchw,nwhu->nchu" } else { "chw,whu->chu" };
        if !(3..=4).contains(&b.len()) || !same_equation(equation, pattern) {
            return Err(OpError::Unsupported { what: format!("the equation `{equation}` for rank {}", b.len()) });
        }
        let rank = b.len();
        if ty.shape[rank - 1] != b[rank - 3] {
            return Err(OpError::mismatch("extents that agree along w", format!("{:?} and {b:?}", ty.shape)));
        }
        ty.shape[rank - 1] = b[rank - 1];
        for axis in (0..rank).filter(|&axis| axis + 2 == rank || axis + 4 == rank) {
            ty.shape[axis] = broadcast(&[ty.shape[axis]], &[b[axis]])?[0];
        }
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        if out[0].shape.contains(&0) {
            return Ok(());
        }
        let (a, b) = (x.f32s_at(VALUES, 0)?, x.f32s_at(VALUES, 1)?);
        let ([an, c, ah, w], [bn, _, bh, u]) = (extents(x, 0), extents(x, 1));
        let h = ah.max(bh);
        for (i, row) in out[0].f32s()?.chunks_exact_mut(u).enumerate() {
            let (n, ci, hi) = (i / (c * h), i / h % c, i % h);
            let (an, bn) = (if an == 1 { 0 } else { n }, if bn == 1 { 0 } else { n });
            let (ah_i, bh_i) = (if ah == 1 { 0 } else { hi }, if bh == 1 { 0 } else { hi });
            row.fill(0.0);
            for wi in 0..w {
                let from = ((bn * w + wi) * bh + bh_i) * u;
                add_scaled(row, a[((an * c + ci) * ah + ah_i) * w + wi], &b[from..from + u]);
            }
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let f = |shape: &[usize], v: &[f32]| Tensor::floats(DType::F16, shape, v);
        let case = |name, a: Tensor, b: Tensor, equation: &str| {
            Case::new(name).input("values", a).input("values", b).constant("equation", equation)
        };
        vec![
            case(
                "rank 3, each h for itself",
                f(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
                f(&[2, 2, 1], &[1.0, 10.0, 2.0, 20.0]),
                "chw,whr->chr",
            )
            .expect(f(&[2, 2, 1], &[5.0, 110.0, 17.0, 230.0])),
            case(
                "rank 4, n and h broadcast, other letters",
                f(&[2, 1, 1, 2], &[1.0, 2.0, 3.0, 4.0]),
                f(&[1, 2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
                "abcd,adce->abce",
            )
            .expect(f(&[2, 1, 2, 2], &[11.0, 14.0, 17.0, 20.0, 23.0, 30.0, 37.0, 44.0])),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_known_in_any_letters() {
        assert!(same_equation("nchw,nwhr->nchr", "nchw,nwhu->nchu"));
        assert!(same_equation("a b c, c b d -> a b d", "chw,whu->chu"));
        assert!(!same_equation("abc,cad->abd", "chw,whu->chu"));
        assert!(!same_equation("abc,abd->abd", "chw,whu->chu"));
        assert!(!same_equation("chw,whu", "chw,whu->chu"));
        assert!(!same_equation("ccc,ccc->ccc", "chw,whu->chu"));
    }
}
