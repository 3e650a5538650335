//! `rank`: tensors of at most five axes.

use super::look::Subject;
use super::placement::RANK_LIMIT;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "rank",
    asks: "No tensor has more than 5 axes",
    reason: "Core ML computes with at most 5 axes.",
    source: "Apple's rules for authors of models; notes of Core ML's operations",
    remedy: "Put axes together with `reshape`.",
    grades: Grades::all(Severity::Error),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (i, op) in look.computing() {
            let rank = op.outputs.iter().filter_map(|&id| Some(look.ty(id)?.shape.as_ref()?.len())).max();
            if let Some(rank) = rank.filter(|&rank| rank > RANK_LIMIT) {
                found.add(look.at(i), format!("its result has {rank} axes"));
            }
        }
    }
}
