//! `invalid`: valid programs.

use anemone_mil::verify_model;

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "invalid",
    asks: "The program is valid",
    reason: "Core ML refuses an invalid program, often without saying what is wrong.",
    source: "Anemone's verifier; the rules of MIL as coremltools has them",
    remedy: "Correct what made the package.",
    grades: Grades::all(Severity::Error),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for diagnostic in verify_model(subject.model) {
        found.add(diagnostic.place, diagnostic.problem.to_string());
    }
}
