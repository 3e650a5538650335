//! `fused-attention`: attention in single operations.

use super::look::Subject;
use super::{Found, Grades, Profile, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "fused-attention",
    asks: "Attention is spelled out, not `scaled_dot_product_attention`",
    reason: "The Neural Engine has no path for the fused operation: two of them made the whole model fall to the \
             CPU without a word, and iOS 26 computes them inaccurately there.",
    source: "Apple's rules for authors of models; stablehlo-coreml#89; executorch#15833, PR #16057, #16144; \
             coremltools#2650 (batches on the GPU)",
    remedy: "Split the heads: product, mask, softmax, product.",
    grades: Grades::ane(Severity::Error).gpu(Severity::Warning).portable(Severity::Note),
    from: None,
    check,
};

/// Batches of so many are computed wrongly on the GPU.
const WRONG_BATCH: usize = 10;

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (i, op) in look.of_kind("scaled_dot_product_attention") {
            let batch = look.operand_shape(op, "query").and_then(|s| s.first().copied()).unwrap_or(1);
            match found.profile() {
                Profile::Ane => found.add(look.at(i), "it is fused attention"),
                Profile::Gpu if batch >= WRONG_BATCH => {
                    found.add(look.at(i), format!("a batch of {batch} is computed wrongly on the GPU"));
                }
                Profile::Gpu => {}
                Profile::Portable => found.add(look.at(i), "it keeps the model from the Neural Engine"),
            }
        }
    }
}
