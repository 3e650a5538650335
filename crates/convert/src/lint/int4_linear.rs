//! `int4-linear`: linear 4-bit weights.

use anemone_mil::Operation;
use anemone_mil::types::DType;

use super::look::{Look, Subject};
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "int4-linear",
    asks: "Weights of 4 bits are palettes",
    reason: "Linear 4-bit weights crashed on the Neural Engine, later fell to the GPU without a word; palettes \
             stream on all generations.",
    source: "coreai-models#55, #205; coreai-model-zoo, `ane-silicon-reference.md`",
    remedy: "Use palettes of 4 bits, or 8-bit weights with a scale for each row.",
    grades: Grades::ane(Severity::Warning),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (i, op) in look.function.body.ops.iter().enumerate() {
            if let Some(dtype) = of_four_bits(look, op) {
                found.add(look.at(i), format!("its data are {dtype}"));
            }
        }
    }
}

/// The type of the data of linear weights of 4 bits, if an operation makes such.
pub(super) fn of_four_bits(look: &Look<'_>, op: &Operation) -> Option<DType> {
    let param = match op.name_of_kind.as_str() {
        "constexpr_blockwise_shift_scale" => "data",
        "constexpr_affine_dequantize" => "quantized_data",
        _ => return None,
    };
    let dtype = match look.operand(op, param) {
        Some(id) => look.ty(id).map(|ty| ty.dtype),
        None => look.constant(op, param).map(|c| c.ty.dtype),
    };
    dtype.filter(|dtype| matches!(dtype, DType::I4 | DType::U4))
}
