//! `axis-limit`: extents that the Neural Engine takes.

use super::look::{Subject, extents};
use super::placement::{AXIS_LIMIT, Device, OLD_AXIS_LIMIT};
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "axis-limit",
    asks: "No axis on the Neural Engine exceeds 16384 (65536 from A16 on)",
    reason: "The compiler refuses tensors that are wider: \"Tensor width goes beyond limit supported (16414 > \
             16384)\".",
    source: "FluidInference/mobius#61; ANEMLL splits vocabularies sixteen-fold; coreai-model-zoo, `ane-silicon- \
             reference.md`",
    remedy: "Split the weight and join the results, for vocabularies above all.",
    grades: Grades::ane(Severity::Error),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (i, op) in look.computing() {
            // Results alone, and not those that go out of the function: joining is done for the caller.
            let out = |id| look.function.body.outputs.contains(&id);
            let joins = op.name_of_kind == "concat" && op.outputs.iter().all(|&id| out(id));
            let elsewhere = look.predictions[i].device == Device::Cpu && !look.predictions[i].reason.contains("exceed");
            if joins || elsewhere {
                continue;
            }
            let weights = ["x", "weight", "y"].into_iter().filter_map(|param| look.operand_shape(op, param));
            let results = op.outputs.iter().filter_map(|&id| look.shape(id));
            let widest = results.chain(weights).max_by_key(|shape| shape.iter().copied().max());
            let Some(shape) = widest else { continue };
            let largest = shape.iter().copied().max().unwrap_or(0);
            if largest > AXIS_LIMIT {
                found.add(look.at(i), format!("{} exceeds {AXIS_LIMIT}", extents(&shape)));
            } else if largest > OLD_AXIS_LIMIT {
                found.add_milder(look.at(i), format!("{} exceeds {OLD_AXIS_LIMIT}", extents(&shape)));
            }
        }
    }
}
