//! `palette-blocks`: palettes that the Neural Engine takes.

use super::look::{Subject, extents};
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "palette-blocks",
    asks: "Palettes are grouped along one axis",
    reason: "Palettes for each pair of row and block were refused with -14; groups of 8 or 16 channels are what \
             the Neural Engine streams.",
    source: "CoreML-LLM's documentation; Apple, \"Palettization\": grouped channels",
    remedy: "Group palettes by output channels alone.",
    grades: Grades::ane(Severity::Error),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (i, op) in look.function.body.ops.iter().enumerate() {
            if op.name_of_kind != "constexpr_lut_to_dense" {
                continue;
            }
            let Some(lut) = look.operand_shape(op, "lut").filter(|shape| shape.len() > 2) else { continue };
            let groups = &lut[..lut.len() - 2];
            if groups.iter().filter(|&&n| n > 1).count() > 1 {
                found.add(look.at(i), format!("its tables are {}", extents(&lut)));
            }
        }
    }
}
