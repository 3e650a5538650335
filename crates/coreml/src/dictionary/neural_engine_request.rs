//! The entry `ane-request`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "ane-request",
    title: "the Neural Engine fails while it runs (status 0x1d, 0x16, 0x2)",
    marks: &[
        "aneprogramprocessrequestdirect",
        "status=0x1d",
        "program inference error",
        "com.apple.appleneuralengine",
        "ane evaluation error",
    ],
    aliases: &["0x1d", "0x16", "status=0x1d", "com.apple.appleneuralengine"],
    cause: "The program was compiled for the Neural Engine and the engine failed while running it. With state, 0x1d is what \
            programs with three or more state tensors end in although the plan puts nearly all of their operations there. \
            Other statuses come from buffers the engine cannot take and from several processes sharing it.",
    evidence: &[
        "john-rocky/CoreML-LLM, docs/MLSTATE_PATTERN.md: three or more states give 0x1d, one works",
        "jundot/omlx#2940: status 0x2, at another procedure each time, under load",
        "AUTOMATIC1111/stable-diffusion-webui#13419: status 0x16 after a system update",
    ],
    remedies: &[
        "Convert with one state tensor that holds all layers' keys and values; `anemone convert` does.",
        "Do not retry on the same loaded model: load anew, or fall back to cpu-and-gpu; later calls fail as well.",
        "Compare numbers afterwards with `anemone doctor PACKAGE`: the fallback of such programs has given wrong results.",
    ],
    example: "ANE Evaluation Error = Error Domain=com.apple.appleneuralengine Code=8 \
              \"processRequest:model:qos:qIndex:modelStringID:options:error:: ANEProgramProcessRequestDirect() Failed with \
              status=0x1d : statusType=0x9: Program Inference error\"",
};
