//! `position-range`: positions within the state.

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "position-range",
    asks: "Positions are bounded, in the program or by what the package says",
    reason: "Core ML may drop what is written beyond the end of a state without a word, and leaves a look-up \
             beyond the end of a table undefined.",
    source: "Apple's documentation of `gather` and of states; coreai-models#124",
    remedy: "Clamp positions in the program, or say the context in the metadata (`anemone.context`), so that \
             callers check it.",
    grades: Grades::ane(Severity::Warning).gpu(Severity::Warning).portable(Severity::Note),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    let said = subject.model.metadata.user_defined.get("anemone.context").and_then(|n| n.parse::<usize>().ok());
    for look in &subject.functions {
        let states: Vec<Vec<usize>> =
            look.function.states().filter_map(|(_, _, ty)| Some(ty?.shape.to_vec())).collect();
        // One axis of every state has as many positions as the package says.
        let bounded = said.is_some_and(|n| states.iter().all(|shape| shape.contains(&n)));
        if bounded || states.is_empty() {
            continue;
        }
        for (i, op) in look.of_kind("slice_update") {
            let from_input = |id| look.function.inputs.contains(&id);
            let clamped = |id| {
                let maker = look.maker(id).map(|(_, op)| op.name_of_kind.as_str());
                matches!(maker, Some("minimum" | "clip" | "mod"))
            };
            let Some(end) = look.operand(op, "end").filter(|&id| !look.is_fixed(id)) else { continue };
            if look.depends(end, &from_input) && !look.depends(end, &clamped) {
                found.add(look.at(i), "where it writes depends on an input without a bound");
            }
        }
    }
}
