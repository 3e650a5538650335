//! `op-count`: programs that the Neural Engine's planner takes.

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "op-count",
    asks: "A function has at most 3200 operations",
    reason: "The plan builder failed with -14 beyond about 3200 operations: 26 layers of 3164 in all passed, 27 \
             of 3284 did not.",
    source: "mil_spec, `crates/mil_convert/tests/sharded_e2e.rs`",
    remedy: "Split the model into parts, each a package: `anemone convert --profile ane` does.",
    grades: Grades::ane(Severity::Error),
    from: None,
    check,
};

/// Operations that still passed.
pub(crate) const MOST: usize = 3200;

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        let n = look.computing().count();
        if n > MOST {
            found.add(look.place(), format!("it has {n} operations"));
        }
    }
}
