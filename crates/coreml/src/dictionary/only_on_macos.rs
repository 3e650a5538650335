//! The entry `only-on-macos`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "only-on-macos",
    title: "predictions need Core ML, which this machine has not",
    marks: &[
        "requires core ml framework",
        "unable to load coreml.framework",
        "failed to load _mlmodelproxy",
        "libcoremlpython",
        "model prediction is only supported on macos",
    ],
    aliases: &["libcoremlpython", "only on macOS"],
    cause: "coremltools runs packages through Apple's framework, which exists on Apple systems only.",
    evidence: &["apple/coremltools#2658, #1348, #154 and #2220: the same on Windows and Linux"],
    remedies: &[
        "Anemone's own runtime takes the very same package on any machine: `anemone predict`, `anemone chat`.",
        "`anemone inspect` and `anemone placement` read it without running it.",
    ],
    example: "RuntimeWarning: Unable to load CoreML.framework. Cannot make predictions. Failed to load _MLModelProxy: No module \
              named 'coremltools.libcoremlpython'",
};
