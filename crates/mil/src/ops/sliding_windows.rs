//! `sliding_windows`: every window of `size` slices along `axis`, `stride` apart; a window's own axis follows `axis`.

use smallvec::smallvec;

use crate::case::Case;
use crate::layout::Layout;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::strided::Nest;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct SlidingWindows;

const X: usize = 0;
const AXIS: usize = 1;
const SIZE: usize = 2;
const STRIDE: usize = 3;

/// The stride, checked.
fn stride(x: &dyn Operands) -> Result<usize, OpError> {
    let stride = x.i32_or(STRIDE, 1)?;
    usize::try_from(stride).ok().filter(|&s| s > 0).ok_or_else(|| x.bad(STRIDE, "a stride of 1 or more", stride))
}

impl Op for SlidingWindows {
    fn name(&self) -> &'static str {
        "sliding_windows"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("axis"), Param::required("size"), Param::optional("stride")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        let axis = x.axis(AXIS, ty.shape.len())?;
        let n = ty.shape[axis];
        let size = dims::extent(x, SIZE, x.i32(SIZE)?)?;
        if size == 0 || size > n {
            return Err(x.bad(SIZE, format!("1 to {n} slices"), size));
        }
        ty.shape[axis] = (n - size) / stride(x)? + 1;
        ty.shape.insert(axis + 1, size);
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let shape = x.shape(X);
        if out[0].shape.contains(&0) {
            return Ok(());
        }
        let axis = x.axis(AXIS, shape.len())?;
        let (outer, n, inner) = dims::around(shape, axis)?;
        let (windows, size) = (out[0].shape[axis], out[0].shape[axis + 1]);
        let mut nest = Nest::at(0, 0);
        nest.push(outer, n * inner, windows * size * inner);
        nest.push(windows, stride(x)?.wrapping_mul(inner), size * inner);
        nest.push(size * inner, 1, 1);
        nest.copy(x.data(X)?, &mut out[0].data)
    }

    fn view(&self, x: &dyn Operands, layout: &Layout) -> Option<Layout> {
        let axis = x.axis(AXIS, layout.shape.len()).ok()?;
        let mut all = Layout { shape: self.infer(x).ok()?.pop()?.shape, ..layout.clone() };
        all.strides.insert(axis, layout.strides[axis].checked_mul(stride(x).ok()?)?);
        Some(all)
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::ints(DType::I32, &[5], &[1, 2, 3, 4, 5]);
        let m = Tensor::floats(DType::F16, &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        vec![
            Case::new("one apart").input("x", x.clone()).constant("axis", 0).constant("size", 3).expect(Tensor::ints(
                DType::I32,
                &[3, 3],
                &[1, 2, 3, 2, 3, 4, 3, 4, 5],
            )),
            Case::new("two apart, what is left over is not used")
                .input("x", x)
                .constant("axis", -1)
                .constant("size", 2)
                .constant("stride", 2)
                .expect(Tensor::ints(DType::I32, &[2, 2], &[1, 2, 3, 4])),
            Case::new("of rows").input("x", m).constant("axis", -2).constant("size", 2).expect(Tensor::floats(
                DType::F16,
                &[2, 2, 2],
                &[1.0, 2.0, 3.0, 4.0, 3.0, 4.0, 5.0, 6.0],
            )),
        ]
    }
}
