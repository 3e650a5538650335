//! The entry `aneccompile`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "aneccompile",
    title: "the Neural Engine's compiler refuses the program (ANECCompile FAILED 11)",
    marks: &["aneccompile", "milcompilerforane", "failed to compile ane model", "_anecompiler"],
    aliases: &["11", "ANECCompile FAILED 11", "ANECCompile"],
    cause: "Core ML gave a part of the program to the Neural Engine, and its compiler failed or ran out of memory. Some systems \
            then go on with CPU or GPU without a word; on others loading fails; and on some it seems to succeed until the \
            first prediction ends the process. A program that passes on one chip may fail on a newer one.",
    evidence: &[
        "apple/coremltools#2503: runs on iPhone 15 and not on iPhone 16; memory rises to 5 or 6 GB first",
        "apple/coremltools#2758: loading seems to succeed, the first prediction is killed",
        "apple/ml-stable-diffusion#255: after minutes of loading, on an iPhone 13 Pro Max",
        "pytorch/executorch#19635: LFM2.5 1.2B, CPU and GPU are fine",
        "john-rocky/CoreML-LLM, docs: two states and several functions with more than one token a call",
    ],
    remedies: &[
        "Divide the model into programs of fewer layers; weights of a program should stay well below 2 GB.",
        "Take prefill and decode apart into two packages, each with one function and one state.",
        "Keep every axis at 16384 or less, ranks at 4, shapes fixed, and attention in its single steps.",
        "`anemone doctor PACKAGE` loads it in a process of its own, so that a kill is reported and not suffered.",
        "Ship with cpu-and-gpu for this device until it compiles.",
    ],
    example: "E5RT encountered an STL exception. msg = MILCompilerForANE error: failed to compile ANE model using ANEF. \
              Error=_ANECompiler : ANECCompile() FAILED. E5RT: MILCompilerForANE error: failed to compile ANE model using \
              ANEF. Error=_ANECompiler : ANECCompile() FAILED (11)",
};
