//! `input-alignment`: inputs and outputs in rows of 64 bytes.

use anemone_mil::types::DType;

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "input-alignment",
    asks: "The last axis of inputs and outputs of half floats is a multiple of 32",
    reason: "Inputs and outputs of the Neural Engine lie in rows of 64 bytes; others are copied, and some readers \
             take them as if they had no gaps.",
    source: "Apple's rules for authors of models; coremltools#2631",
    remedy: "Pad the last axis, and read outputs by their strides.",
    grades: Grades::ane(Severity::Note),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        let f = look.function;
        let ports = f.inputs.iter().map(|&id| ("input", id)).chain(f.body.outputs.iter().map(|&id| ("output", id)));
        for (what, id) in ports {
            let (halves, shape) = (look.ty(id).is_some_and(|ty| ty.dtype == DType::F16), look.shape(id));
            if let Some(&last) = shape.as_ref().and_then(|s| s.last()).filter(|&&last| halves && last % 32 != 0) {
                found.add(
                    look.place().part(format!("{what} `{}`", f.value(id).name)),
                    format!("its rows have {last} elements"),
                );
            }
        }
    }
}
