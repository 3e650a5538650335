//! `state-alignment`: states whose rows are multiples of 64 bytes.

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "state-alignment",
    asks: "The last axis of a state is a multiple of 32",
    reason: "A state whose rows are no multiple of 64 bytes fails to run on the Neural Engine.",
    source: "coremltools#2631; Apple's rules for authors of models",
    remedy: "Pad the last axis with zeros.",
    grades: Grades::ane(Severity::Error).portable(Severity::Note),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (_, name, ty) in look.function.states() {
            let Some(ty) = ty else { continue };
            if let Some(last) = ty.shape.last().filter(|&&last| last % 32 != 0) {
                let place = look.place().part(format!("state `{name}`"));
                found.add(place, format!("its last axis has {last} elements; {} would do", last.next_multiple_of(32)));
            }
        }
    }
}
