//! `state-differs`: functions that share their states.

use super::look::{Look, Subject};
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "state-differs",
    asks: "Functions of a package declare the same states",
    reason: "A conversation goes from one function to the next with one state, which both must declare alike.",
    source: "coremltools PR #2686 (functions with shared state)",
    remedy: "Declare each state in every function that has any, with one shape.",
    grades: Grades::all(Severity::Error),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    let mut with_states = subject.functions.iter().filter(|look| look.function.states().next().is_some());
    let Some(first) = with_states.next() else { return };
    let states = |look: &Look<'_>| {
        let mut all: Vec<_> = look.function.states().map(|(_, name, ty)| (name.to_owned(), ty)).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    };
    for look in with_states.filter(|look| states(look) != states(first)) {
        found.add(look.place(), format!("it declares other states than function `{}`", first.name));
    }
}
