//! `conv_transpose`: every element of `x` (n, C, …) adds its multiple of `weight` (C, C_out / groups, …) to the result, `stride`
//! apart; then `bias` (C_out). `pad_type` says what is cut off the whole: nothing (`valid`), what `pad` says (`custom`), or all
//! beyond extent · stride (`same`, an odd element more behind). With `output_shape` the result has that shape: what goes beyond
//! is cut off, what is not reached holds the bias.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::convolving::{Convolution, Layout, bias};
use crate::ops::support::elementwise::expect_float;
use crate::ops::support::windows;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct ConvTranspose;

const LAYOUT: Layout = Layout {
    x: 0,
    weight: 1,
    bias: 2,
    windows: windows::Params { pad: 3, pad_type: 5, strides: 6, dilations: Some(7) },
    groups: 8,
    output_shape: Some(4),
};

impl Op for ConvTranspose {
    fn name(&self) -> &'static str {
        "conv_transpose"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::required("weight"),
                Param::optional("bias"),
                Param::optional("pad"),
                Param::optional("output_shape"),
                Param::optional("pad_type"),
                Param::optional("strides"),
                Param::optional("dilations"),
                Param::optional("groups"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        [LAYOUT.x, LAYOUT.weight, LAYOUT.bias]
            .into_iter()
            .filter(|&p| x.has(p))
            .try_for_each(|p| expect_float(x, p))?;
        Ok(smallvec![Convolution::new(x, LAYOUT)?.result(x.ty(LAYOUT.x))?])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        if out[0].shape.contains(&0) {
            return Ok(());
        }
        let weight = x.f32s(LAYOUT.weight)?;
        let conv = Convolution::new(x, LAYOUT)?;
        conv.run(x.f32s(LAYOUT.x)?, |i| weight[i], bias(x, LAYOUT.bias)?, out[0].f32s()?);
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("one axis, with bias")
                .input("x", Tensor::floats(DType::F16, &[1, 2, 3], &[1.0, 4.0, -1.0, -3.0, -2.0, -4.0]))
                .input("weight", Tensor::floats(DType::F16, &[2, 1, 2], &[4.0, -3.0, 0.0, -3.0]))
                .input("bias", Tensor::floats(DType::F16, &[1], &[100.0]))
                .expect(Tensor::floats(DType::F16, &[1, 1, 4], &[104.0, 122.0, 90.0, 115.0])),
            Case::new("two axes, strides, cut on each side")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 2, 3], &[4.0, -3.0, 0.0, 4.0, 0.0, 4.0]))
                .input(
                    "weight",
                    Tensor::floats(
                        DType::F16,
                        &[1, 2, 3, 3],
                        &[
                            4.0, 2.0, 2.0, 1.0, 1.0, 3.0, -1.0, 4.0, 3.0, -1.0, -1.0, 2.0, 4.0, -4.0, -4.0, -2.0, -1.0,
                            -3.0,
                        ],
                    ),
                )
                .constant("strides", [2, 1])
                .constant("pad_type", "custom")
                .constant("pad", [1, 0, 0, 2])
                .expect(Tensor::floats(
                    DType::F16,
                    &[1, 2, 4, 3],
                    &[
                        4.0, 1.0, 9.0, 12.0, 27.0, 24.0, 4.0, 4.0, 16.0, -4.0, 16.0, 8.0, 16.0, -28.0, -4.0, -12.0,
                        -2.0, -5.0, 16.0, -16.0, 0.0, -8.0, -4.0, -20.0,
                    ],
                )),
            Case::new("same: extents times strides")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 3], &[0.0, 0.0, 4.0]))
                .input("weight", Tensor::floats(DType::F16, &[1, 1, 3], &[2.0, -2.0, 3.0]))
                .constant("strides", [2])
                .constant("pad_type", "same")
                .expect(Tensor::floats(DType::F16, &[1, 1, 6], &[0.0, 0.0, 0.0, 0.0, 8.0, -8.0])),
            Case::new("same with a window smaller than the stride")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 2], &[3.0, 2.0]))
                .input("weight", Tensor::floats(DType::F16, &[1, 1, 1], &[2.0]))
                .constant("strides", [3])
                .constant("pad_type", "same")
                .expect(Tensor::floats(DType::F16, &[1, 1, 6], &[6.0, 0.0, 0.0, 4.0, 0.0, 0.0])),
            Case::new("dilated")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 2], &[-2.0, 2.0]))
                .input("weight", Tensor::floats(DType::F16, &[1, 1, 3], &[-3.0, 1.0, 4.0]))
                .constant("dilations", [2])
                .constant("strides", [2])
                .expect(Tensor::floats(DType::F16, &[1, 1, 7], &[6.0, 0.0, -8.0, 0.0, -6.0, 0.0, 8.0])),
            Case::new("groups")
                .input("x", Tensor::floats(DType::F16, &[1, 4, 2], &[4.0, -2.0, -2.0, 1.0, -1.0, 2.0, -3.0, -3.0]))
                .input("weight", Tensor::floats(DType::F16, &[4, 1, 2], &[-4.0, 0.0, -3.0, -2.0, 4.0, 3.0, 3.0, 1.0]))
                .constant("groups", 2)
                .expect(Tensor::floats(DType::F16, &[1, 2, 3], &[-10.0, 9.0, -2.0, -13.0, -7.0, 3.0])),
            Case::new("the shape given")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 2, 2], &[-3.0, 2.0, 1.0, 4.0]))
                .input("weight", Tensor::floats(DType::F16, &[1, 1, 2, 2], &[0.0, -3.0, 1.0, 0.0]))
                .input("bias", Tensor::floats(DType::F16, &[1], &[0.5]))
                .constant("strides", [2, 3])
                .constant("output_shape", [1, 1, 4, 6])
                .expect(Tensor::floats(
                    DType::F16,
                    &[1, 1, 4, 6],
                    &[
                        0.5, 9.5, 0.5, 0.5, -5.5, 0.5, -2.5, 0.5, 0.5, 2.5, 0.5, 0.5, 0.5, -2.5, 0.5, 0.5, -11.5, 0.5,
                        1.5, 0.5, 0.5, 4.5, 0.5, 0.5,
                    ],
                )),
            Case::new("the shape given, the border cut")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 3], &[1.0, -1.0, -2.0]))
                .input("weight", Tensor::floats(DType::F16, &[1, 1, 3], &[-3.0, 4.0, 2.0]))
                .constant("strides", [2])
                .constant("pad_type", "custom")
                .constant("pad", [1, 1])
                .constant("output_shape", [1, 1, 6])
                .expect(Tensor::floats(DType::F16, &[1, 1, 6], &[4.0, 5.0, -4.0, 4.0, -8.0, -4.0])),
            Case::new("three axes")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 1, 2, 1], &[0.0, -2.0]))
                .input("weight", Tensor::floats(DType::F16, &[1, 1, 2, 1, 2], &[1.0, -1.0, 1.0, -4.0]))
                .expect(Tensor::floats(DType::F16, &[1, 1, 2, 2, 2], &[0.0, 0.0, -2.0, 2.0, 0.0, 0.0, -2.0, 8.0])),
        ]
    }
}
