//! The operations that Anemone knows: one file each, listed here. Decoding, verifying, documentation and the tests iterate
//! this list.

use crate::op::Op;

pub mod support;

mod abs;
mod acos;
mod add;
mod affine;
mod argsort;
mod asin;
mod atan;
mod atanh;
mod avg_pool;
mod band_part;
mod batch_norm;
mod batch_to_space;
mod cast;
mod ceil;
mod clamped_relu;
mod clip;
mod concat;
mod constexpr_affine_dequantize;
mod constexpr_blockwise_shift_scale;
mod constexpr_cast;
mod constexpr_lut_to_dense;
mod constexpr_lut_to_sparse;
mod constexpr_sparse_blockwise_shift_scale;
mod constexpr_sparse_to_dense;
mod conv;
mod conv_quantized;
mod conv_transpose;
mod cos;
mod cosh;
mod crop;
mod crop_resize;
mod cumsum;
mod depth_to_space;
mod dequantize;
mod einsum;
mod elu;
mod equal;
mod erf;
mod exp;
mod exp2;
mod expand_dims;
mod fill;
mod fill_like;
mod flatten2d;
mod floor;
mod floor_div;
mod gather;
mod gather_along_axis;
mod gather_nd;
mod gelu;
mod greater;
mod greater_equal;
mod identity;
mod instance_norm;
mod inverse;
mod l2_norm;
mod l2_pool;
mod layer_norm;
mod leaky_relu;
mod less;
mod less_equal;
mod linear;
mod linear_activation;
mod local_response_norm;
mod log;
mod logical_and;
mod logical_not;
mod logical_or;
mod logical_xor;
mod matmul;
mod max_pool;
mod maximum;
mod minimum;
mod modulo;
mod mul;
mod non_zero;
mod not_equal;
mod one_hot;
mod pad;
mod pixel_shuffle;
mod pixel_unshuffle;
mod pow;
mod prelu;
mod quantize;
mod range_1d;
mod read_state;
mod real_div;
mod reduce_argmax;
mod reduce_argmin;
mod reduce_l1_norm;
mod reduce_l2_norm;
mod reduce_log_sum;
mod reduce_log_sum_exp;
mod reduce_max;
mod reduce_mean;
mod reduce_min;
mod reduce_prod;
mod reduce_sum;
mod reduce_sum_square;
mod relu;
mod relu6;
mod resample;
mod reshape;
mod reshape_like;
mod resize;
mod resize_bilinear;
mod resize_nearest_neighbor;
mod reverse;
mod reverse_sequence;
mod round;
mod rsqrt;
mod scaled_dot_product_attention;
mod scaled_tanh;
mod scatter;
mod scatter_along_axis;
mod scatter_nd;
mod select;
mod shape;
mod sigmoid;
mod sigmoid_hard;
mod sign;
mod silu;
mod sin;
mod sinh;
mod slice_by_index;
mod slice_by_size;
mod slice_update;
mod sliding_windows;
mod softmax;
mod softplus;
mod softplus_parametric;
mod softsign;
mod space_to_batch;
mod space_to_depth;
mod split;
mod sqrt;
mod square;
mod squeeze;
mod stack;
mod sub;
mod tan;
mod tanh;
mod threshold;
mod thresholded_relu;
mod tile;
mod topk;
mod transpose;
mod upsample_bilinear;
mod upsample_nearest_neighbor;
mod write_state;

/// Every operation, in order of names.
pub static ALL: &[&dyn Op] = &[
    &abs::Abs,
    &acos::Acos,
    &add::Add,
    &affine::Affine,
    &argsort::Argsort,
    &asin::Asin,
    &atan::Atan,
    &atanh::Atanh,
    &avg_pool::AvgPool,
    &band_part::BandPart,
    &batch_norm::BatchNorm,
    &batch_to_space::BatchToSpace,
    &cast::Cast,
    &ceil::Ceil,
    &clamped_relu::ClampedRelu,
    &clip::Clip,
    &concat::Concat,
    &constexpr_affine_dequantize::ConstexprAffineDequantize,
    &constexpr_blockwise_shift_scale::ConstexprBlockwiseShiftScale,
    &constexpr_cast::ConstexprCast,
    &constexpr_lut_to_dense::ConstexprLutToDense,
    &constexpr_lut_to_sparse::ConstexprLutToSparse,
    &constexpr_sparse_blockwise_shift_scale::ConstexprSparseBlockwiseShiftScale,
    &constexpr_sparse_to_dense::ConstexprSparseToDense,
    &conv::Conv,
    &conv_quantized::ConvQuantized,
    &conv_transpose::ConvTranspose,
    &cos::Cos,
    &cosh::Cosh,
    &crop::Crop,
    &crop_resize::CropResize,
    &cumsum::Cumsum,
    &depth_to_space::DepthToSpace,
    &dequantize::Dequantize,
    &einsum::Einsum,
    &elu::Elu,
    &equal::Equal,
    &erf::Erf,
    &exp::Exp,
    &exp2::Exp2,
    &expand_dims::ExpandDims,
    &fill::Fill,
    &fill_like::FillLike,
    &flatten2d::Flatten2d,
    &floor::Floor,
    &floor_div::FloorDiv,
    &gather::Gather,
    &gather_along_axis::GatherAlongAxis,
    &gather_nd::GatherNd,
    &gelu::Gelu,
    &greater::Greater,
    &greater_equal::GreaterEqual,
    &identity::Identity,
    &instance_norm::InstanceNorm,
    &inverse::Inverse,
    &l2_norm::L2Norm,
    &l2_pool::L2Pool,
    &layer_norm::LayerNorm,
    &leaky_relu::LeakyRelu,
    &less::Less,
    &less_equal::LessEqual,
    &linear::Linear,
    &linear_activation::LinearActivation,
    &local_response_norm::LocalResponseNorm,
    &log::Log,
    &logical_and::LogicalAnd,
    &logical_not::LogicalNot,
    &logical_or::LogicalOr,
    &logical_xor::LogicalXor,
    &matmul::Matmul,
    &max_pool::MaxPool,
    &maximum::Maximum,
    &minimum::Minimum,
    &modulo::Mod,
    &mul::Mul,
    &non_zero::NonZero,
    &not_equal::NotEqual,
    &one_hot::OneHot,
    &pad::Pad,
    &pixel_shuffle::PixelShuffle,
    &pixel_unshuffle::PixelUnshuffle,
    &pow::Pow,
    &prelu::Prelu,
    &quantize::Quantize,
    &range_1d::Range1d,
    &read_state::ReadState,
    &real_div::RealDiv,
    &reduce_argmax::ReduceArgmax,
    &reduce_argmin::ReduceArgmin,
    &reduce_l1_norm::ReduceL1Norm,
    &reduce_l2_norm::ReduceL2Norm,
    &reduce_log_sum::ReduceLogSum,
    &reduce_log_sum_exp::ReduceLogSumExp,
    &reduce_max::ReduceMax,
    &reduce_mean::ReduceMean,
    &reduce_min::ReduceMin,
    &reduce_prod::ReduceProd,
    &reduce_sum::ReduceSum,
    &reduce_sum_square::ReduceSumSquare,
    &relu::Relu,
    &relu6::Relu6,
    &resample::Resample,
    &reshape::Reshape,
    &reshape_like::ReshapeLike,
    &resize::Resize,
    &resize_bilinear::ResizeBilinear,
    &resize_nearest_neighbor::ResizeNearestNeighbor,
    &reverse::Reverse,
    &reverse_sequence::ReverseSequence,
    &round::Round,
    &rsqrt::Rsqrt,
    &scaled_dot_product_attention::ScaledDotProductAttention,
    &scaled_tanh::ScaledTanh,
    &scatter::Scatter,
    &scatter_along_axis::ScatterAlongAxis,
    &scatter_nd::ScatterNd,
    &select::Select,
    &shape::Shape,
    &sigmoid::Sigmoid,
    &sigmoid_hard::SigmoidHard,
    &sign::Sign,
    &silu::Silu,
    &sin::Sin,
    &sinh::Sinh,
    &slice_by_index::SliceByIndex,
    &slice_by_size::SliceBySize,
    &slice_update::SliceUpdate,
    &sliding_windows::SlidingWindows,
    &softmax::Softmax,
    &softplus::Softplus,
    &softplus_parametric::SoftplusParametric,
    &softsign::Softsign,
    &space_to_batch::SpaceToBatch,
    &space_to_depth::SpaceToDepth,
    &split::Split,
    &sqrt::Sqrt,
    &square::Square,
    &squeeze::Squeeze,
    &stack::Stack,
    &sub::Sub,
    &tan::Tan,
    &tanh::Tanh,
    &threshold::Threshold,
    &thresholded_relu::ThresholdedRelu,
    &tile::Tile,
    &topk::Topk,
    &transpose::Transpose,
    &upsample_bilinear::UpsampleBilinear,
    &upsample_nearest_neighbor::UpsampleNearestNeighbor,
    &write_state::WriteState,
];

/// The operation named `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Op> {
    // The list is in order of names; a test holds it to that.
    ALL.binary_search_by(|op| op.name().cmp(name)).ok().map(|i| ALL[i])
}
