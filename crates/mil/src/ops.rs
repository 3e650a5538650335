//! The operations that Anemone knows: one file each, listed here. Decoding, verifying, documentation and the tests iterate
//! this list.

use crate::op::Op;

pub mod support;

macro_rules! registry {
    ($($module:ident::$op:ident,)*) => {
        $(mod $module;)*
        /// Every operation, by name.
        pub static ALL: &[&dyn Op] = &[$(&$module::$op,)*];
    };
}

registry! {
    abs::Abs,
    acos::Acos,
    add::Add,
    argsort::Argsort,
    asin::Asin,
    atan::Atan,
    atanh::Atanh,
    cast::Cast,
    ceil::Ceil,
    clamped_relu::ClampedRelu,
    clip::Clip,
    concat::Concat,
    cos::Cos,
    cosh::Cosh,
    cumsum::Cumsum,
    elu::Elu,
    equal::Equal,
    erf::Erf,
    exp::Exp,
    exp2::Exp2,
    expand_dims::ExpandDims,
    fill::Fill,
    fill_like::FillLike,
    floor::Floor,
    floor_div::FloorDiv,
    gather::Gather,
    gelu::Gelu,
    greater::Greater,
    greater_equal::GreaterEqual,
    identity::Identity,
    inverse::Inverse,
    leaky_relu::LeakyRelu,
    less::Less,
    less_equal::LessEqual,
    linear::Linear,
    linear_activation::LinearActivation,
    log::Log,
    logical_and::LogicalAnd,
    logical_not::LogicalNot,
    logical_or::LogicalOr,
    logical_xor::LogicalXor,
    matmul::Matmul,
    maximum::Maximum,
    minimum::Minimum,
    modulo::Mod,
    mul::Mul,
    not_equal::NotEqual,
    one_hot::OneHot,
    pad::Pad,
    pow::Pow,
    range_1d::Range1d,
    read_state::ReadState,
    real_div::RealDiv,
    relu::Relu,
    relu6::Relu6,
    reshape::Reshape,
    round::Round,
    rsqrt::Rsqrt,
    scaled_dot_product_attention::ScaledDotProductAttention,
    scaled_tanh::ScaledTanh,
    select::Select,
    shape::Shape,
    sigmoid::Sigmoid,
    sigmoid_hard::SigmoidHard,
    sign::Sign,
    silu::Silu,
    sin::Sin,
    sinh::Sinh,
    slice_by_index::SliceByIndex,
    slice_update::SliceUpdate,
    softplus::Softplus,
    softsign::Softsign,
    split::Split,
    sqrt::Sqrt,
    square::Square,
    squeeze::Squeeze,
    stack::Stack,
    sub::Sub,
    tan::Tan,
    tanh::Tanh,
    threshold::Threshold,
    thresholded_relu::ThresholdedRelu,
    tile::Tile,
    topk::Topk,
    transpose::Transpose,
    write_state::WriteState,
}

/// The operation named `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Op> {
    // The list is in order of names; a test holds it to that.
    ALL.binary_search_by(|op| op.name().cmp(name)).ok().map(|i| ALL[i])
}
