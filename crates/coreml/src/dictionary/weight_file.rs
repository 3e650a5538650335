//! The entry `weight-file`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "weight-file",
    title: "the file of weights is missing, cut short, or not one",
    marks: &["storage reader expects file format version", "unable to deserialize object", "weights/weight.bin"],
    aliases: &["weight.bin", "Code=110", "110"],
    cause: "The package on disk is not whole: the weights were not downloaded (a pointer of Git LFS stands in their place), \
            were cut short, or were moved without their folder.",
    evidence: &[
        "apple/ml-stable-diffusion#5: weight.bin cannot be opened",
        "huggingface/swift-coreml-transformers#18: a pointer of Git LFS in place of the model",
        "rustnn/rustnn#173: a weight file of another version",
    ],
    remedies: &[
        "`anemone inspect PACKAGE` checks every reference into the weight files, and says which fails.",
        "Download it again (`git lfs pull`), and check the free disk space.",
    ],
    example: "Error parsing MIL model: at model.mlmodelc/model.mil:11:258: Could not open model.mlmodelc/weights/weight.bin",
};
