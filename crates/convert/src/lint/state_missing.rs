//! `state-missing`: language models with a cache.

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "state-missing",
    asks: "A language model keeps its cache in states, or gives it back",
    reason: "Without a key-value cache every token costs as much as the whole text before it.",
    source: "fault M1 of packages in the wild: states missing or ignored",
    remedy: "Convert with a stateful cache: `anemone convert SOURCE -o DIR`.",
    grades: Grades::ane(Severity::Warning).gpu(Severity::Warning).portable(Severity::Warning),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    if subject.functions.iter().any(|look| look.function.states().next().is_some()) {
        return;
    }
    for look in &subject.functions {
        let f = look.function;
        let is_logits = |&&id: &&_| f.value(id).name.to_ascii_lowercase().contains("logits");
        let attends = look.of_kind("softmax").next().or(look.of_kind("scaled_dot_product_attention").next()).is_some();
        // A cache that goes in and out has more outputs than the logits.
        let only = f.body.outputs.iter().all(|id| is_logits(&id));
        if attends && only && !f.body.outputs.is_empty() {
            found.add(look.place(), "it attends and gives logits alone, and no function has a state");
        }
    }
}
