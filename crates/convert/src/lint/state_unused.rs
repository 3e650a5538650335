//! `state-unused`: states that are read and written.

use anemone_mil::op::Effect;

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "state-unused",
    asks: "A state that is declared is read and written",
    reason: "A state that is never written remembers nothing, so every token is answered as if it were the first.",
    source: "fault M1 of packages in the wild: states missing or ignored; coremltools#2275",
    remedy: "Convert anew; in PyTorch, write to the registered buffer in place.",
    grades: Grades::all(Severity::Error),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (id, name, _) in look.function.states() {
            let place = || look.place().part(format!("state `{name}`"));
            let touched = |effect: Effect| {
                let ops = look.users(id).iter().map(|&i| &look.function.body.ops[i]);
                ops.filter_map(|op| op.op()).any(|known| known.effect() == effect)
            };
            if !touched(Effect::WriteState) {
                found.add(place(), "it is never written");
            } else if !touched(Effect::ReadState) {
                found.add(place(), "it is never read");
            }
        }
    }
}
