//! `unsupported`: operations that are known.

use anemone_mil::Kind;

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "unsupported",
    asks: "Every operation is known to Anemone",
    reason: "A program with an operation that is not known cannot be run on the CPU here, so nothing that Core ML \
             gives for it can be checked.",
    source: "docs/ops.md: the operations",
    remedy: "Convert with other operations, or report the one that is missing.",
    grades: Grades::ane(Severity::Warning).gpu(Severity::Warning).portable(Severity::Error),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (i, op) in look.function.body.ops.iter().enumerate() {
            if matches!(op.kind, Kind::Unknown) {
                found.add(look.at(i), format!("`{}` is not known", op.name_of_kind));
            }
        }
    }
}
