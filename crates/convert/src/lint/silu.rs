//! `silu`: an activation that the Neural Engine takes.

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "silu",
    asks: "`silu` is spelled with `sigmoid`",
    reason: "Apple's rules for models on the Neural Engine have x·sigmoid(x) for silu.",
    source: "Apple's rules for authors of models (coreai-models, `neural_engine_rules.md`)",
    remedy: "Use `sigmoid` and `mul`.",
    grades: Grades::ane(Severity::Note),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (i, _) in look.of_kind("silu") {
            found.add(look.at(i), "it is `silu`");
        }
    }
}
