//! `too-new`: operations that the system has.

use anemone_mil::Opset;

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "too-new",
    asks: "The system has the operation sets that functions use",
    reason: "A system refuses a model of an operation set that came later.",
    source: "coremltools: opsets by deployment target",
    remedy: "Convert for an older system, or require a newer one.",
    grades: Grades::all(Severity::Error),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        match Opset::from_name(&look.function.opset) {
            Some(opset) if opset <= subject.os.opset() => {}
            Some(opset) => {
                found.add(look.place(), format!("{opset} came with {}; the package is for {}", opset.os(), subject.os))
            }
            None => found.add(look.place(), format!("the operation set {:?} is not known", look.function.opset)),
        }
    }
}
