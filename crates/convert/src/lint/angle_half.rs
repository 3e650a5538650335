//! `angle-half`: angles that half floats cannot hold.

use anemone_mil::types::DType;

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "angle-half",
    asks: "Rotary angles are not computed in half floats",
    reason: "Half floats hold no odd integer above 2048, so angles of later positions are wrong by whole radians.",
    source: "IEEE 754 binary16; coreai-models#124 (corrupt output from 2048 positions on)",
    remedy: "Look cosines and sines up in a table that was computed in double precision, or take them as inputs.",
    grades: Grades::ane(Severity::Error).gpu(Severity::Warning).portable(Severity::Warning),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for kind in ["sin", "cos"] {
            for (i, op) in look.of_kind(kind) {
                if look.operand(op, "x").and_then(|id| look.ty(id)).is_some_and(|ty| ty.dtype == DType::F16) {
                    found.add(look.at(i), "the angle is fp16");
                }
            }
        }
    }
}
