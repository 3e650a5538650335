//! The entry `helper-application`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "helper-application",
    title: "Couldn't communicate with a helper application",
    marks: &[
        "couldn't communicate with a helper application",
        "nscocoaerrordomain code=4097",
        "nscocoaerrordomain code=4099",
    ],
    aliases: &["4097", "4099", "Couldn't communicate with a helper application"],
    cause: "Core ML compiles for the Neural Engine in a process of the system's. That process died or was out of reach: it \
            ran out of memory on a large program, the sandbox forbids it, or it is being restarted.",
    evidence: &["Apple's Foundation: NSXPCConnectionInterrupted is 4097, NSXPCConnectionInvalid 4099"],
    remedies: &[
        "Try again once; a connection that was interrupted is set up anew.",
        "If it comes again at the same model, the compiler dies of it: divide the model, or load with cpu-and-gpu.",
        "Look for crash reports of `ANECompilerService` and `aned` in Console.",
        "Restart the device; the compiler's caches are rebuilt.",
    ],
    example: "Error Domain=NSCocoaErrorDomain Code=4097 \"Couldn\u{2019}t communicate with a helper application.\"",
};
