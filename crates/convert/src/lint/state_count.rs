//! `state-count`: few states.

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "state-count",
    asks: "A function has one state, at most two",
    reason: "With three states or more the Neural Engine takes the model and every prediction fails (status \
             0x1d); 56 states do not compile.",
    source: "CoreML-LLM, `MLSTATE_PATTERN.md`; SqueezeBits; mobius#77",
    remedy: "Put the caches of all layers into one state, one axis over layers.",
    grades: Grades::ane(Severity::Error),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        match look.function.states().count() {
            0 | 1 => {}
            2 => found.add_milder(look.place(), "it has 2 states; two of different shapes always failed for one model"),
            n => found.add(look.place(), format!("it has {n} states")),
        }
    }
}
