//! The entry `killed`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "killed",
    title: "the process is killed (SIGKILL, exit code 137)",
    marks: &["sigkill", "killed: 9", "exit code 137", "exit status 137", "signal 9", "jetsam"],
    aliases: &["137", "SIGKILL", "9"],
    cause: "The system ended the process without a word. With Core ML that is mostly memory (on iPhone above the app's limit), \
            or the first prediction after the Neural Engine's compiler had failed and loading had seemed to succeed.",
    evidence: &[
        "apple/coremltools#2758: loading takes 140 s and succeeds, the first prediction is killed",
        "apple/coremltools#2503: memory rises to 5 or 6 GB, then the app is ended",
        "apple/coremltools#2716: palettized stateful models die after 100 to 200 predictions with one producer version",
    ],
    remedies: &[
        "`anemone doctor PACKAGE` runs it in a process of its own, watches its memory, and soaks it.",
        "Divide the model, compress its weights, shorten the context: `anemone convert --context N --weights int8`.",
        "On iPhone ask for the entitlement com.apple.developer.kernel.increased-memory-limit.",
    ],
    example: "zsh: killed     python predict.py (SIGKILL, exit code 137)",
};
