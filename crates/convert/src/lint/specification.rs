//! `specification`: a version of the specification that fits.

use anemone_mil::place::Place;

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "specification",
    asks: "The version of the model specification fits operations and system",
    reason: "States came with version 9, several functions too; a system refuses a version that came later.",
    source: "coremltools, `__init__.py`: specification versions",
    remedy: "Write the version of the oldest system that has what the model uses.",
    grades: Grades::all(Severity::Error),
    from: None,
    check,
};

/// The version that brought states and functions by name.
const STATES: i32 = 9;

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    let version = subject.model.specification_version;
    let newest = subject.os.specification();
    let needs = |what: &str| format!("it is {version}; {what} needs {STATES} or later");
    if version > newest {
        found.add(Place::whole(), format!("it is {version}; {} read {newest} at most", subject.os));
    }
    if version < STATES && subject.functions.iter().any(|look| look.function.states().next().is_some()) {
        found.add(Place::whole(), needs("a state"));
    }
    if version < STATES && subject.functions.len() > 1 {
        found.add(Place::whole(), needs("a model of several functions"));
    }
}
