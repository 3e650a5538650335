//! `off-engine`: work that stays on the Neural Engine.

use super::look::{Subject, operands};
use super::placement::Device;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "off-engine",
    asks: "What the Neural Engine has begun, it ends without the CPU between",
    reason: "Each operation between two of the Neural Engine's that runs elsewhere costs about 0.6 ms of changing \
             device. What comes before the first or after the last of them costs one change.",
    source: "CoreML-LLM's measurements; gigastt#42; executorch#4091",
    remedy: "Move such operations before the first layer (positions, masks, look-ups) or to the caller, or spell \
             them with others.",
    grades: Grades::ane(Severity::Warning),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        let ops = &look.function.body.ops;
        // Whether an operation follows from one on the engine, or one on the engine follows from it.
        let mut after = vec![false; look.function.values.len()];
        let mut follows = vec![false; ops.len()];
        for (i, op) in ops.iter().enumerate() {
            follows[i] = operands(op).any(|id| after[id.index()]);
            let engine = look.predictions[i].device == Device::NeuralEngine && is_work(op);
            op.outputs.iter().for_each(|id| after[id.index()] = follows[i] || engine);
        }
        let mut before = vec![false; look.function.values.len()];
        for (i, op) in ops.iter().enumerate().rev() {
            let leads = op.outputs.iter().any(|id| before[id.index()]);
            let engine = look.predictions[i].device == Device::NeuralEngine && is_work(op);
            operands(op).for_each(|id| before[id.index()] |= leads || engine);
            let between = follows[i] && leads && look.predictions[i].device == Device::Cpu;
            if between {
                found.add(look.at(i), look.predictions[i].reason.clone());
            }
        }
    }
}

/// Whether an operation is work, and not the moving of what others made.
fn is_work(op: &anemone_mil::Operation) -> bool {
    matches!(
        op.name_of_kind.as_str(),
        "conv" | "linear" | "matmul" | "softmax" | "layer_norm" | "conv_transpose" | "einsum"
    )
}
