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
    asin::Asin,
    atan::Atan,
    atanh::Atanh,
    cast::Cast,
    ceil::Ceil,
    clamped_relu::ClampedRelu,
    clip::Clip,
    cos::Cos,
    cosh::Cosh,
    elu::Elu,
    equal::Equal,
    erf::Erf,
    exp::Exp,
    exp2::Exp2,
    floor::Floor,
    floor_div::FloorDiv,
    gelu::Gelu,
    greater::Greater,
    greater_equal::GreaterEqual,
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
    maximum::Maximum,
    minimum::Minimum,
    modulo::Mod,
    mul::Mul,
    not_equal::NotEqual,
    pow::Pow,
    read_state::ReadState,
    real_div::RealDiv,
    relu::Relu,
    relu6::Relu6,
    round::Round,
    rsqrt::Rsqrt,
    scaled_tanh::ScaledTanh,
    select::Select,
    sigmoid::Sigmoid,
    sigmoid_hard::SigmoidHard,
    sign::Sign,
    silu::Silu,
    sin::Sin,
    sinh::Sinh,
    softplus::Softplus,
    softsign::Softsign,
    sqrt::Sqrt,
    square::Square,
    sub::Sub,
    tan::Tan,
    tanh::Tanh,
    threshold::Threshold,
    thresholded_relu::ThresholdedRelu,
    write_state::WriteState,
}

/// The operation named `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Op> {
    // The list is in order of names; a test holds it to that.
    ALL.binary_search_by(|op| op.name().cmp(name)).ok().map(|i| ALL[i])
}
