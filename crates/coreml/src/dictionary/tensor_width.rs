//! The entry `tensor-width`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "tensor-width",
    title: "an axis is longer than the Neural Engine takes (16384)",
    marks: &["tensor width goes beyond limit", "goes beyond limit supported"],
    aliases: &["16384"],
    cause: "The Neural Engine's compiler takes axes of at most 16384 elements on chips up to A15 and M1 or M2 (65536 is reported \
            for later ones). A vocabulary in one piece is mostly what is too long.",
    evidence: &[
        "FluidInference/mobius#61: 16414 of 16384",
        "Anemll divides the last projection into 16 pieces for this reason",
    ],
    remedies: &[
        "Divide the projection to the vocabulary into pieces of at most 16384, and put their outputs together outside.",
        "`anemone placement PACKAGE` lists axes beyond the limit.",
    ],
    example: "Tensor width goes beyond limit supported (16414/16390 > 16384)",
};
