//! `state-powers`: powers of two in states.

use super::look::{Subject, extents};
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "state-powers",
    asks: "All axes of a state but the first are powers of two",
    reason: "A state of (20, 8, 512, 80) failed to compile for the Neural Engine and ran once 80 was padded to \
             128.",
    source: "SqueezeBits, \"Disaggregated inference on Apple Silicon\" (2025)",
    remedy: "Pad head sizes, choose a context of a power of two, and put layers and heads on the first axis.",
    grades: Grades::ane(Severity::Warning),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (_, name, ty) in look.function.states() {
            let Some(ty) = ty else { continue };
            let odd: Vec<usize> = ty.shape.iter().skip(1).copied().filter(|n| !n.is_power_of_two()).collect();
            if !odd.is_empty() {
                let place = look.place().part(format!("state `{name}`"));
                found.add(place, format!("{} in {}", extents(&odd), extents(&ty.shape)));
            }
        }
    }
}
