//! `prefill-width`: tokens of one call.

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "prefill-width",
    asks: "A call takes at most 64 tokens",
    reason: "A stateful block of 128 tokens could not run on the Neural Engine where 16 and 32 did; Apple's own \
             models take 64.",
    source: "coremltools#2553; Anemll#27; Apple's rules for authors of models",
    remedy: "Convert with `--prefill 64` or less.",
    grades: Grades::ane(Severity::Warning),
    from: None,
    check,
};

const MOST: usize = 64;

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for &id in &look.function.inputs {
            let integers = look.ty(id).is_some_and(|ty| ty.dtype.is_int());
            let width = look.shape(id).filter(|_| integers).and_then(|shape| shape.iter().copied().max());
            if let Some(width) = width.filter(|&width| width > MOST) {
                let place = look.place().part(format!("input `{}`", look.function.value(id).name));
                found.add(place, format!("it takes {width} tokens"));
            }
        }
    }
}
