//! `blocks-of-weights`: scales that the Neural Engine takes.

use anemone_mil::Operation;

use super::look::{Look, Subject, extents};
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "blocks-of-weights",
    asks: "Quantized weights have one scale, or one for each output channel",
    reason: "Weights with a scale for each block do not run on the Neural Engine: they fell to the CPU, or came \
             out wrong without a word (cosine 0.367 on an iPhone 16 Pro Max).",
    source: "coremltools#2510 (\"ANE only support per-cout/per-tensor quantization\"), #2600; coreai-models#279",
    remedy: "Convert with `--profile ane`, and `--weights int8` (a scale for each row) or palettes.",
    grades: Grades::ane(Severity::Error),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (i, op) in look.function.body.ops.iter().enumerate() {
            if let Some(scales) = in_blocks(look, op) {
                found.add(look.at(i), format!("its scales are {}", extents(&scales)));
            }
        }
    }
}

/// The extents of the scales of weights in blocks, if an operation makes such.
pub(super) fn in_blocks(look: &Look<'_>, op: &Operation) -> Option<Vec<usize>> {
    let scales =
        (op.name_of_kind == "constexpr_blockwise_shift_scale").then(|| look.operand_shape(op, "scale")).flatten()?;
    // The first axis is that of outputs, of linear layers and of convolutions.
    scales.iter().skip(1).any(|&n| n > 1).then_some(scales)
}
