//! `function-count`: few functions.

use anemone_mil::place::Place;

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "function-count",
    asks: "A package has few functions",
    reason: "Memory grows with each function, although they share weights.",
    source: "coremltools#2351",
    remedy: "Keep one function for each width that is used.",
    grades: Grades::ane(Severity::Note).gpu(Severity::Note).portable(Severity::Note),
    from: None,
    check,
};

const MOST: usize = 4;

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    let n = subject.functions.len();
    if n > MOST {
        found.add(Place::whole(), format!("it has {n} functions"));
    }
}
