//! `nested-blocks`: no control flow.

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "nested-blocks",
    asks: "No operation has nested blocks",
    reason: "Conditions and loops run on the CPU and split the model; Anemone does not run them.",
    source: "coremltools' guide on flexible models; placement as reported by executorch#4091",
    remedy: "Unroll loops, and choose by arithmetic or by functions.",
    grades: Grades::ane(Severity::Error).gpu(Severity::Warning).portable(Severity::Warning),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (i, _) in look.computing().filter(|(_, op)| !op.blocks.is_empty()) {
            found.add(look.at(i), "it has nested blocks");
        }
    }
}
