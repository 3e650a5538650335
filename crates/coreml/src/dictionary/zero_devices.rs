//! The entry `zero-devices`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "zero-devices",
    title: "Cannot provide zero compute device types",
    marks: &["cannot provide zero compute device types", "compute_device_types_mask"],
    aliases: &["compute_device_types_mask"],
    cause: "Core ML had no device left to run the program on, and threw an exception that ends the process. It was seen on \
            macOS 15 on machines without a Neural Engine, virtual ones among them.",
    evidence: &["microsoft/onnxruntime#22275: on macOS 15, thrown while the program is prepared"],
    remedies: &[
        "Ask for cpu-only, or for all, on machines without a Neural Engine; `anemone doctor` lists the devices.",
        "Update macOS 15 to its latest version.",
    ],
    example: "*** Terminating app due to uncaught exception 'NSGenericException', reason: 'Failed to set \
              compute_device_types_mask E5RT: Cannot provide zero compute device types. (1)'",
};
