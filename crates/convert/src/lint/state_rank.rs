//! `state-rank`: states of at most four axes.

use super::look::{Subject, extents};
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "state-rank",
    asks: "States have at most 4 axes",
    reason: "The compiler of the Neural Engine refused states of rank 5 and took those of rank 4; beyond 5 no \
             tensor runs there.",
    source: "FluidInference's reports; Apple's rules for authors of models name 5 as the highest rank",
    remedy: "Put layers and heads on one axis.",
    grades: Grades::ane(Severity::Error).portable(Severity::Note),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (_, name, ty) in look.function.states() {
            let Some(ty) = ty else { continue };
            if ty.shape.len() > 4 {
                let place = look.place().part(format!("state `{name}`"));
                found.add(place, format!("it is {}, of {} axes", extents(&ty.shape), ty.shape.len()));
            }
        }
    }
}
