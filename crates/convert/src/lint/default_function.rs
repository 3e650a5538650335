//! `default-function`: a function to begin with.

use anemone_mil::place::Place;

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "default-function",
    asks: "The default function exists",
    reason: "Core ML loads the default function where none is named.",
    source: "the schema of Core ML models: `defaultFunctionName`",
    remedy: "Name one of the functions.",
    grades: Grades::all(Severity::Error),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    if subject.model.function(None).is_none() {
        let name = subject.model.default_name();
        found.add(Place::whole(), format!("there is no function `{name}`"));
    }
}
