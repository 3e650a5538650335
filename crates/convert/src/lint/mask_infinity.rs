//! `mask-infinity`: finite masks.

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "mask-infinity",
    asks: "Masks are finite, and no larger than −40000 or so",
    reason: "The Neural Engine does not treat −∞ in softmax as IEEE has it; and a mask near the largest half \
             float overflows to −∞ once a score is added.",
    source: "Apple's rules for authors of models (−40000); a probe on a Mac saw no difference, an iPhone was not \
             tried",
    remedy: "Mask with −40000.",
    grades: Grades::ane(Severity::Error).gpu(Severity::Warning).portable(Severity::Note),
    from: None,
    check,
};

/// Beyond this a score of a few thousand overflows half floats.
const NEAR_OVERFLOW: f32 = -60_000.0;
/// What may hold or make a mask.
const MASKING: &[&str] =
    &["add", "sub", "mul", "select", "maximum", "minimum", "scaled_dot_product_attention", "fill", "concat"];

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (i, op) in look.function.body.ops.iter().enumerate() {
            if !MASKING.contains(&op.name_of_kind.as_str()) {
                continue;
            }
            let constants = op.inputs.iter().filter_map(|(param, _)| look.constant(op, param));
            let floats = constants.filter(|c| c.ty.dtype.is_float() && c.deferred.is_none());
            let least = floats.flat_map(|c| c.floats(0..c.ty.elements())).fold(0.0, f32::min);
            if least == f32::NEG_INFINITY {
                found.add(look.at(i), "an operand holds −∞");
            } else if least < NEAR_OVERFLOW {
                found
                    .add_milder(look.at(i), format!("an operand holds {least}, which overflows once a score is added"));
            }
        }
    }
}
