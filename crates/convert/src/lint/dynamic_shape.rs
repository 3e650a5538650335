//! `dynamic-shape`: static shapes.

use anemone_mil::PortShape;

use super::look::{self, Subject};
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "dynamic-shape",
    asks: "All shapes are fixed",
    reason: "With flexible shapes nothing ran on the Neural Engine, and enumerated ones made it slow for all but \
             the default; with a state the plan could not be built at all.",
    source: "coremltools#2370, #1909, #2548, #2600; swift-chat#31",
    remedy: "Make a function for each number of tokens instead.",
    grades: Grades::ane(Severity::Error),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        let f = look.function;
        let ports = f.ports.inputs.iter().filter_map(|port| Some((port, port.kind.array()?.1)));
        let flexible: Vec<_> = ports
            .filter(|(_, shape)| matches!(shape, PortShape::Enumerated { .. } | PortShape::Range { .. }))
            .map(|(port, shape)| (port.name.clone(), matches!(shape, PortShape::Enumerated { .. })))
            .collect();
        let open = f.inputs.iter().filter(|&&id| look.ty(id).is_some_and(|ty| ty.to_static().is_none()));
        for &id in open {
            let name = &f.value(id).name;
            let enumerated = flexible.iter().any(|(port, enumerated)| port == name && *enumerated);
            let how = if enumerated { "enumerated shapes" } else { "a flexible shape" };
            found.add(look.place().part(format!("input `{name}`")), format!("it has {how}"));
        }
        // Shapes that come about inside, such as those of non_zero.
        let inner = look.computing().filter(|(_, op)| {
            let open = |id: &anemone_mil::ValueId| look.ty(*id).is_some_and(|ty| ty.to_static().is_none());
            op.outputs.iter().any(open) && !look::operands(op).any(|id| open(&id))
        });
        for (i, _) in inner {
            found.add(look.at(i), "the shape of its result is known only at run time");
        }
    }
}
