//! `palette-scale`: palettes without scales.

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "palette-scale",
    asks: "Palettes have no scale for each channel besides",
    reason: "A palette whose result is scaled once more crashes the GPU's `mps.dequantize` on macOS 26.",
    source: "coremltools PR #2688",
    remedy: "Make palettes without `enable_per_channel_scale`.",
    grades: Grades::ane(Severity::Warning).gpu(Severity::Error).portable(Severity::Warning),
    from: Some(super::Os::Ios26),
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (i, op) in look.function.body.ops.iter().enumerate() {
            let maker = |param| look.operand(op, param).and_then(|id| look.maker(id));
            let scaled = op.name_of_kind == "constexpr_blockwise_shift_scale"
                && maker("data").is_some_and(|(_, data)| data.name_of_kind == "constexpr_lut_to_dense");
            if scaled {
                found.add(look.at(i), "it scales a palette");
            }
        }
    }
}
