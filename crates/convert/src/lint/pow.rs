//! `pow`: no powers.

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "pow",
    asks: "`pow` is avoided",
    reason: "Exporters of models for the Neural Engine avoid it: it is slow there or leaves the engine.",
    source: "SqueezeBits, \"Disaggregated inference on Apple Silicon\" (2025)",
    remedy: "Multiply a value with itself; use `sqrt`, `rsqrt` or `exp2`.",
    grades: Grades::ane(Severity::Warning),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (i, _) in look.of_kind("pow") {
            found.add(look.at(i), "it is a power");
        }
    }
}
