//! `band_part`: zero outside a band around the diagonal of the last two axes: `lower` diagonals below it and `upper` above
//! it stay; all of a side if negative.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::tensor::{Data, DataMut, Tensor};
use crate::types::{DType, Opset};

pub(super) struct BandPart;

const X: usize = 0;
const LOWER: usize = 1;
const UPPER: usize = 2;

impl Op for BandPart {
    fn name(&self) -> &'static str {
        "band_part"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::optional("lower"), Param::optional("upper")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let ty = dims::numbers(x, X)?;
        if ty.shape.len() < 2 {
            return Err(x.bad(X, "rank 2 or more", ty));
        }
        x.i32_or(LOWER, -1)?;
        x.i32_or(UPPER, -1)?;
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let [.., rows, columns] = *x.shape(X) else { return Err(x.bad(X, "rank 2 or more", x.shape(X))) };
        if x.shape(X).contains(&0) {
            return Ok(());
        }
        let width = |param| x.i32_or(param, -1).map(|v| usize::try_from(v).unwrap_or(usize::MAX));
        let band = Band { rows, columns, lower: width(LOWER)?, upper: width(UPPER)? };
        match (x.data(X)?, &mut out[0].data) {
            (Data::F32(a), DataMut::F32(r)) => band.keep(a, r),
            (Data::I32(a), DataMut::I32(r)) => band.keep(a, r),
            (Data::Bool(a), DataMut::Bool(r)) => band.keep(a, r),
            _ => return Err(dims::class_mismatch()),
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[3, 3], &[1.0, 2.0, 3.0, 4.0, f32::INFINITY, 6.0, 7.0, 8.0, 9.0]);
        let case = |name, lower: i32, upper: i32, expect: [f32; 9]| {
            Case::new(name)
                .input("x", x.clone())
                .constant("lower", lower)
                .constant("upper", upper)
                .expect(Tensor::floats(DType::F16, &[3, 3], &expect))
        };
        let i = f32::INFINITY;
        vec![
            case("the upper triangle", 0, -1, [1.0, 2.0, 3.0, 0.0, i, 6.0, 0.0, 0.0, 9.0]),
            case("the lower triangle", -1, 0, [1.0, 0.0, 0.0, 4.0, i, 0.0, 7.0, 8.0, 9.0]),
            case("a band", 1, 0, [1.0, 0.0, 0.0, 4.0, i, 0.0, 0.0, 8.0, 9.0]),
            Case::new("by default all stays").input("x", x.clone()).expect(x.clone()),
            Case::new("truth values, more rows than columns")
                .input("x", Tensor::bools(&[1, 3, 2], &[true; 6]))
                .constant("lower", 1)
                .constant("upper", 0)
                .expect(Tensor::bools(&[1, 3, 2], &[true, false, true, true, false, true])),
        ]
    }
}

struct Band {
    rows: usize,
    columns: usize,
    lower: usize,
    upper: usize,
}

impl Band {
    fn keep<T: Copy + Default>(&self, a: &[T], r: &mut [T]) {
        for (i, (a, r)) in a.chunks_exact(self.columns).zip(r.chunks_exact_mut(self.columns)).enumerate() {
            let row = i % self.rows;
            let end = row.saturating_add(self.upper).saturating_add(1).min(self.columns);
            let start = row.saturating_sub(self.lower).min(end);
            r.fill(T::default());
            r[start..end].copy_from_slice(&a[start..end]);
        }
    }
}
