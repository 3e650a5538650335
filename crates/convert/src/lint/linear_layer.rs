//! `linear-layer`: 1×1 convolutions.

use super::look::{Subject, extents};
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "linear-layer",
    asks: "Layers of weights are 1×1 convolutions",
    reason: "Stateful blocks with `linear` could not run on the Neural Engine where those with convolutions did, \
             which is the form that its memory is laid out for.",
    source: "coremltools#2553; Anemll#27; Apple's rules for authors of models; Apple, \"Deploying Transformers on \
             the Apple Neural Engine\"",
    remedy: "Lay activations out as (batch, channels, 1, tokens) and use `conv` with weights (outputs, inputs, 1, \
             1).",
    grades: Grades::ane(Severity::Warning),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (kind, param) in [("linear", "weight"), ("matmul", "y")] {
            for (i, op) in look.of_kind(kind) {
                let weight = look.operand(op, param).filter(|&id| look.is_fixed(id)).and_then(|id| look.shape(id));
                let large = weight.filter(|shape| shape.iter().filter(|&&n| n > 1).count() >= 2);
                if let Some(shape) = large {
                    found.add(look.at(i), format!("a weight of {} in `{kind}`", extents(&shape)));
                }
            }
        }
    }
}
