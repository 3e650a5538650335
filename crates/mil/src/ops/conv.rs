//! `conv`: convolution over one to three spatial axes. `x` is (n, C, …), `weight` (C_out, C / groups, …), `bias` (C_out). What
//! is added around the image is zero: nothing (`valid`), as `pad` says (`custom`), or so much that there are
//! ⌈extent / stride⌉ windows (`same`, an odd element more behind; `same_lower`, before).

use smallvec::smallvec;

use crate::case::Case;
use crate::constant::Const;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::convolving::{Convolution, Layout, bias};
use crate::ops::support::elementwise::expect_float;
use crate::ops::support::patches::Patches;
use crate::ops::support::planes::Planes;
use crate::ops::support::pointwise::Pointwise;
use crate::ops::support::windows;
use crate::packed::Packed;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Conv;

const LAYOUT: Layout = Layout {
    x: 0,
    weight: 1,
    bias: 2,
    windows: windows::Params { strides: 3, pad_type: 4, pad: 5, dilations: Some(6) },
    groups: 7,
    output_shape: None,
};

impl Op for Conv {
    fn name(&self) -> &'static str {
        "conv"
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
                Param::optional("strides"),
                Param::optional("pad_type"),
                Param::optional("pad"),
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
        let conv = Convolution::new(x, LAYOUT)?;
        let (image, weight, bias) = (x.f32s(LAYOUT.x)?, x.f32s(LAYOUT.weight)?, bias(x, LAYOUT.bias)?);
        if conv.is_product() {
            conv.run_product(image, weight, bias, out[0].f32s()?);
        } else {
            conv.run(image, |i| weight[i], bias, out[0].f32s()?);
        }
        Ok(())
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        // Positions along one axis are tokens, whose weights other functions share, packed as those of `linear` are; compressed
        // weights are multiplied as the integers that they are.
        let tokens = x.ty_at(LAYOUT.x, 0).1.iter().skip(2).filter(|&&n| n > 1).count() < 2;
        let compressed = matches!(x.packed_at(LAYOUT.weight, 0), Some(Packed::Compressed(_)));
        if (tokens || compressed && !x.exact())
            && let Some(kernel) = Pointwise::new(x, LAYOUT)
        {
            return Some(Box::new(kernel));
        }
        match Planes::new(x, LAYOUT) {
            Some(kernel) => Some(Box::new(kernel)),
            None => Some(Box::new(Patches::new(x, LAYOUT)?)),
        }
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("one axis, with bias")
                .input("x", Tensor::floats(DType::F16, &[1, 2, 4], &[4.0, 1.0, 2.0, 4.0, 1.0, 2.0, 3.0, -2.0]))
                .input(
                    "weight",
                    Tensor::floats(
                        DType::F16,
                        &[2, 2, 3],
                        &[-4.0, -2.0, -2.0, 3.0, 4.0, -4.0, 0.0, 3.0, -3.0, 3.0, -3.0, 0.0],
                    ),
                )
                .input("bias", Tensor::floats(DType::F16, &[2], &[10.0, -10.0]))
                .expect(Tensor::floats(DType::F16, &[1, 2, 2], &[-13.0, 20.0, -16.0, -19.0])),
            Case::new("two axes, strides, padding on each side")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[1, 1, 4, 5],
                        &[
                            3.0, -2.0, -1.0, -2.0, 2.0, -2.0, 4.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 4.0, 3.0, 3.0, 2.0,
                            1.0, -1.0, 4.0,
                        ],
                    ),
                )
                .input("weight", Tensor::floats(DType::F16, &[1, 1, 3, 2], &[0.0, -3.0, 3.0, -3.0, 3.0, 1.0]))
                .constant("strides", [2, 1])
                .constant("pad_type", "custom")
                .constant("pad", [1, 0, 0, 2])
                .expect(Tensor::floats(
                    DType::F16,
                    &[1, 1, 2, 6],
                    &[13.0, 9.0, 3.0, -12.0, 6.0, 0.0, 2.0, 7.0, -10.0, 4.0, 21.0, 0.0],
                )),
            Case::new("same: the odd element behind")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 4], &[-3.0, -4.0, 0.0, -4.0]))
                .input("weight", Tensor::floats(DType::F16, &[1, 1, 2], &[-3.0, 0.0]))
                .constant("pad_type", "same")
                .expect(Tensor::floats(DType::F16, &[1, 1, 4], &[9.0, 12.0, 0.0, 12.0])),
            Case::new("same_lower: the odd element before")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 4], &[4.0, 0.0, 3.0, 4.0]))
                .input("weight", Tensor::floats(DType::F16, &[1, 1, 2], &[3.0, 1.0]))
                .constant("pad_type", "same_lower")
                .expect(Tensor::floats(DType::F16, &[1, 1, 4], &[4.0, 12.0, 3.0, 13.0])),
            Case::new("same with strides")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[1, 1, 5, 6],
                        &[
                            -1.0, 0.0, -2.0, 0.0, -1.0, -2.0, 4.0, -4.0, -4.0, -3.0, 4.0, 2.0, 3.0, -3.0, 2.0, -1.0,
                            0.0, -4.0, 1.0, 3.0, 1.0, -3.0, 0.0, -2.0, 4.0, 3.0, -3.0, 0.0, 4.0, 3.0,
                        ],
                    ),
                )
                .input(
                    "weight",
                    Tensor::floats(DType::F16, &[1, 1, 3, 3], &[2.0, 1.0, -4.0, 2.0, 0.0, -4.0, -2.0, 0.0, 2.0]),
                )
                .constant("strides", [2, 2])
                .constant("pad_type", "same")
                .expect(Tensor::floats(
                    DType::F16,
                    &[1, 1, 3, 3],
                    &[-10.0, 16.0, -10.0, 18.0, -25.0, 10.0, 21.0, -23.0, 6.0],
                )),
            Case::new("dilated")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 7], &[0.0, 1.0, 3.0, 2.0, -1.0, 1.0, 1.0]))
                .input("weight", Tensor::floats(DType::F16, &[1, 1, 3], &[-4.0, -4.0, 1.0]))
                .constant("dilations", [2])
                .constant("pad_type", "valid")
                .expect(Tensor::floats(DType::F16, &[1, 1, 3], &[-13.0, -11.0, -7.0])),
            Case::new("groups")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[2, 4, 3],
                        &[
                            -1.0, 1.0, -2.0, -2.0, -3.0, -1.0, 3.0, -1.0, -1.0, 1.0, 4.0, -1.0, 1.0, -1.0, 1.0, 0.0,
                            1.0, 0.0, 2.0, 4.0, -3.0, 1.0, -1.0, -1.0,
                        ],
                    ),
                )
                .input("weight", Tensor::floats(DType::F16, &[2, 2, 2], &[-2.0, -4.0, -1.0, 3.0, -4.0, -1.0, 4.0, 4.0]))
                .constant("groups", 2)
                .expect(Tensor::floats(DType::F16, &[2, 2, 2], &[-9.0, 6.0, 9.0, 17.0, 5.0, -3.0, -12.0, -21.0])),
            Case::new("one channel each, more results than operands")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[1, 2, 3, 3],
                        &[
                            -3.0, -4.0, 2.0, -4.0, -2.0, 0.0, 3.0, -4.0, 1.0, 0.0, -3.0, 3.0, 3.0, 0.0, 4.0, 1.0, 4.0,
                            4.0,
                        ],
                    ),
                )
                .input(
                    "weight",
                    Tensor::floats(
                        DType::F16,
                        &[4, 1, 2, 2],
                        &[1.0, -2.0, -3.0, 1.0, -3.0, 2.0, 4.0, -2.0, 0.0, -4.0, -3.0, -1.0, 3.0, 4.0, 1.0, 1.0],
                    ),
                )
                .constant("groups", 2)
                .constant("strides", [1, 1])
                .expect(Tensor::floats(
                    DType::F16,
                    &[1, 4, 2, 2],
                    &[15.0, -2.0, -13.0, 11.0, -11.0, 8.0, 28.0, -12.0, 3.0, -16.0, -7.0, -32.0, -9.0, 7.0, 14.0, 24.0],
                )),
            Case::new("three axes")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[1, 1, 2, 3, 2],
                        &[1.0, -4.0, -1.0, 4.0, -1.0, -3.0, -2.0, 2.0, -4.0, 4.0, 3.0, 1.0],
                    ),
                )
                .input(
                    "weight",
                    Tensor::floats(DType::F16, &[1, 1, 2, 2, 2], &[0.0, 2.0, 0.0, 0.0, -2.0, 0.0, 2.0, -4.0]),
                )
                .expect(Tensor::floats(DType::F16, &[1, 1, 1, 2, 1], &[-28.0, 18.0])),
            Case::new("a product: one position, one tap")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[2, 9, 1, 1],
                        &[
                            -4.0, 2.0, -1.0, 3.0, -4.0, 4.0, -3.0, -1.0, 4.0, -4.0, 1.0, 2.0, -1.0, -4.0, 0.0, -1.0,
                            3.0, 2.0,
                        ],
                    ),
                )
                .input(
                    "weight",
                    Tensor::floats(
                        DType::F16,
                        &[2, 9, 1, 1],
                        &[
                            -1.0, -4.0, 1.0, -2.0, 2.0, 3.0, -1.0, 4.0, 0.0, 0.0, 2.0, 3.0, 4.0, 4.0, -3.0, -1.0, 4.0,
                            -2.0,
                        ],
                    ),
                )
                .input("bias", Tensor::floats(DType::F16, &[2], &[1.0, 2.0]))
                .expect(Tensor::floats(DType::F16, &[2, 2, 1, 1], &[-7.0, -22.0, 10.0, -1.0])),
            Case::new("a product in groups")
                .input("x", Tensor::floats(DType::F16, &[1, 4, 1, 2], &[-4.0, 1.0, 2.0, 2.0, 3.0, 1.0, -3.0, 3.0]))
                .input("weight", Tensor::floats(DType::F16, &[2, 2, 1, 2], &[-1.0, 3.0, 3.0, 4.0, -4.0, 3.0, 1.0, 0.0]))
                .constant("groups", 2)
                .expect(Tensor::floats(DType::F16, &[1, 2, 1, 1], &[21.0, -12.0])),
            Case::new("one tap over many positions")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[1, 3, 1, 4],
                        &[3.0, 4.0, 0.0, -4.0, 2.0, -2.0, -2.0, -3.0, -3.0, 4.0, -1.0, -4.0],
                    ),
                )
                .input("weight", Tensor::floats(DType::F16, &[2, 3, 1, 1], &[-3.0, -1.0, -1.0, -2.0, 4.0, 3.0]))
                .expect(Tensor::floats(DType::F16, &[1, 2, 1, 4], &[-8.0, -14.0, 3.0, 19.0, -7.0, -4.0, -11.0, -16.0])),
            Case::new("a constant matrix over one position of two images")
                .input("x", Tensor::floats(DType::F16, &[2, 3, 1, 1], &[3.0, 2.0, -3.0, 4.0, -2.0, 4.0]))
                .constant("weight", Const::floats(DType::F16, &[2, 3, 1, 1], &[-3.0, -1.0, -1.0, -2.0, 4.0, 3.0]))
                .constant("bias", Const::floats(DType::F16, &[2], &[1.0, 0.0]))
                .expect(Tensor::floats(DType::F16, &[2, 2, 1, 1], &[-7.0, -7.0, -13.0, -4.0])),
            Case::new("a constant matrix over many positions")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[1, 3, 1, 4],
                        &[3.0, 4.0, 0.0, -4.0, 2.0, -2.0, -2.0, -3.0, -3.0, 4.0, -1.0, -4.0],
                    ),
                )
                .constant("weight", Const::floats(DType::F16, &[2, 3, 1, 1], &[-3.0, -1.0, -1.0, -2.0, 4.0, 3.0]))
                .constant("bias", Const::floats(DType::F16, &[2], &[0.5, -1.0]))
                .expect(Tensor::floats(DType::F16, &[1, 2, 1, 4], &[-7.5, -13.5, 3.5, 19.5, -8.0, -5.0, -12.0, -17.0])),
            Case::new("a constant matrix over every other position")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 3], &[1.0, 2.0, 3.0]))
                .constant("weight", Const::floats(DType::F16, &[1, 1, 1], &[2.0]))
                .constant("strides", [2])
                .expect(Tensor::floats(DType::F16, &[1, 1, 2], &[2.0, 6.0])),
        ]
    }
}
