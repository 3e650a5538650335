//! `state-dtype`: states of half floats.

use anemone_mil::types::DType;

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "state-dtype",
    asks: "States hold half floats",
    reason: "Core ML takes states of fp16 elements alone, up to iOS 26.",
    source: "coremltools, `load.py`: \"State only support fp16 dtype\"; notes of coremltools 9",
    remedy: "Declare the state as fp16.",
    grades: Grades::all(Severity::Error),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for &id in &look.function.inputs {
            let value = look.function.value(id);
            if let Some(ty) = value.ty.state().filter(|ty| ty.dtype != DType::F16) {
                found.add(look.place().part(format!("state `{}`", value.name)), format!("it holds {}", ty.dtype));
            }
        }
    }
}
