//! `names`: identifiers.

use anemone_mil::build::is_identifier;

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "names",
    asks: "Names of functions, inputs, outputs and states are identifiers",
    reason: "Core ML's compiler takes letters, digits, `_` and `@`, and no digit first; other names fail late or \
             are changed.",
    source: "the schema of MIL: identifiers are `[A-Za-z_][A-Za-z0-9_@]*`",
    remedy: "Rename them.",
    grades: Grades::all(Severity::Error),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        let f = look.function;
        if !is_identifier(look.name) {
            found.add(look.place(), format!("{:?} is no identifier", look.name));
        }
        for &id in f.inputs.iter().chain(&f.body.outputs) {
            let name = &f.value(id).name;
            if !is_identifier(name) {
                found.add(look.place(), format!("{name:?} is no identifier"));
            }
        }
    }
}
