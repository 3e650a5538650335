//! `state-flexible`: states of fixed shapes.

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "state-flexible",
    asks: "States have fixed shapes",
    reason: "Core ML takes no state with an axis of unknown extent.",
    source: "coremltools, `load.py`; coremltools#2537 (\"we don't support flexible shape\")",
    remedy: "Convert for one context length, or make several packages and copy the state from one to the next.",
    grades: Grades::all(Severity::Error),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for &id in &look.function.inputs {
            let value = look.function.value(id);
            if let Some(ty) = value.ty.state().filter(|ty| ty.to_static().is_none()) {
                found.add(look.place().part(format!("state `{}`", value.name)), format!("it is {ty}"));
            }
        }
    }
}
