//! `flexible-bounds`: bounds of flexible shapes.

use anemone_mil::PortShape;

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "flexible-bounds",
    asks: "Flexible shapes have an upper bound, and at most 128 are enumerated",
    reason: "Core ML refuses programs with unbounded axes, and with more than 128 enumerated shapes.",
    source: "coremltools: \"unbounded RangeDim is not allowed\"; `EnumeratedShapes` takes up to 128",
    remedy: "Give the range an upper bound, the context for a sequence.",
    grades: Grades::all(Severity::Error),
    from: None,
    check,
};

/// Shapes that may be enumerated.
const MOST: usize = 128;

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for port in &look.function.ports.inputs {
            let place = || look.place().part(format!("input `{}`", port.name));
            match port.kind.array() {
                Some((_, PortShape::Range { bounds, .. })) if bounds.iter().any(|(_, high)| high.is_none()) => {
                    found.add(place(), "an axis has no upper bound");
                }
                Some((_, PortShape::Enumerated { shapes, .. })) if shapes.len() > MOST => {
                    found.add(place(), format!("{} shapes are enumerated", shapes.len()));
                }
                _ => {}
            }
        }
    }
}
