//! `conv_quantized`: `conv` with a weight of integers, which stands for `weight · quant_scale + quant_bias`; both have one
//! element, or one for each channel of the result. Look-up tables (`quantization_type` of `lut`) are not supported.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::convolving::{Convolution, Layout};
use crate::ops::support::elementwise::expect_float;
use crate::ops::support::picking::expect_ints;
use crate::ops::support::windows;
use crate::tensor::{Data, Tensor};
use crate::types::{Class, DType, Opset};

pub(super) struct ConvQuantized;

const LAYOUT: Layout = Layout {
    x: 0,
    weight: 1,
    bias: 2,
    windows: windows::Params { strides: 7, pad_type: 8, pad: 9, dilations: Some(10) },
    groups: 11,
    output_shape: None,
};
const QUANTIZATION_TYPE: usize = 3;
const NBITS: usize = 4;
const QUANT_SCALE: usize = 5;
const QUANT_BIAS: usize = 6;

/// Elements of `quant_scale` or `quant_bias`, one or as many as channels of the result.
fn per_channel(x: &dyn Operands, param: usize) -> Result<&[f32], OpError> {
    let (v, channels) = (x.f32s(param)?, x.shape(LAYOUT.weight)[0]);
    if v.len() == 1 || v.len() == channels {
        Ok(v)
    } else {
        Err(x.bad(param, format!("1 or {channels} elements"), v.len()))
    }
}

impl Op for ConvQuantized {
    fn name(&self) -> &'static str {
        "conv_quantized"
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
                Param::required("quantization_type"),
                Param::optional("nbits"),
                Param::required("quant_scale"),
                Param::required("quant_bias"),
                Param::optional("strides"),
                Param::optional("pad_type"),
                Param::optional("pad"),
                Param::optional("dilations"),
                Param::optional("groups"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        expect_float(x, LAYOUT.x)?;
        expect_ints(x, LAYOUT.weight)?;
        if x.has(LAYOUT.bias) && !matches!(x.dtype(LAYOUT.bias).class(), Class::Float | Class::Int) {
            return Err(x.bad(LAYOUT.bias, "numbers", x.dtype(LAYOUT.bias)));
        }
        let kind = x.text_or(QUANTIZATION_TYPE, "linear")?;
        if kind != "linear" {
            return Err(OpError::Unsupported { what: format!("the quantization type `{kind}`") });
        }
        if !(1..=8).contains(&x.i32_or(NBITS, 8)?) {
            return Err(x.bad(NBITS, "1 to 8", x.i32_or(NBITS, 8)?));
        }
        let conv = Convolution::new(x, LAYOUT)?;
        per_channel(x, QUANT_SCALE)?;
        per_channel(x, QUANT_BIAS)?;
        Ok(smallvec![conv.result(x.ty(LAYOUT.x))?])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        if out[0].shape.contains(&0) {
            return Ok(());
        }
        let conv = Convolution::new(x, LAYOUT)?;
        let (weight, scale, shift) =
            (x.i32s(LAYOUT.weight)?, per_channel(x, QUANT_SCALE)?, per_channel(x, QUANT_BIAS)?);
        let per_output: usize = x.shape(LAYOUT.weight)[1..].iter().product();
        let of = |v: &[f32], i: usize| if v.len() == 1 { v[0] } else { v[i / per_output] };
        let bias = if x.has(LAYOUT.bias) { Some(x.data(LAYOUT.bias)?) } else { None };
        conv.run(
            x.f32s(LAYOUT.x)?,
            |i| weight[i] as f32 * of(scale, i) + of(shift, i),
            |c| match bias {
                Some(Data::F32(b)) => b[c],
                Some(Data::I32(b)) => b[c] as f32,
                _ => 0.0,
            },
            out[0].f32s()?,
        );
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let case = |name, scale: &[f32], shift: &[f32], expect: &[f32]| {
            Case::new(name)
                .input("x", Tensor::floats(DType::F32, &[1, 1, 3], &[1.0, 2.0, 3.0]))
                .constant("weight", crate::Const::ints(DType::U8, &[2, 1, 2], &[0, 1, 2, 255]))
                .constant("quantization_type", "linear")
                .constant("quant_scale", crate::Const::floats(DType::F32, &[scale.len()], scale))
                .constant("quant_bias", crate::Const::floats(DType::F32, &[shift.len()], shift))
                .expect(Tensor::floats(DType::F32, &[1, 2, 2], expect))
        };
        vec![
            case("one scale for all", &[0.5], &[-1.0], &[-2.0, -3.5, 253.0, 379.5]),
            case("one scale for each channel", &[1.0, 2.0], &[0.0, -4.0], &[2.0, 3.0, 1012.0, 1518.0])
                .constant("nbits", 8),
        ]
    }
}
