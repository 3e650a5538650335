//! The entry `mps-dequantize`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "mps-dequantize",
    title: "the GPU's compiler fails on compressed weights (mps.dequantize)",
    marks: &["mps.dequantize", "mpsgraph"],
    aliases: &["mps.dequantize", "MPSGraph"],
    cause: "The program's weights are compressed in a form that the GPU's compiler does not take, for example palettes with a \
            scale for each channel.",
    evidence: &["apple/coremltools, pull request 2688: `enable_per_channel_scale` crashes on macOS 26"],
    remedies: &[
        "Convert without scales for each channel of palettes.",
        "Keep the GPU out: cpu-and-neural-engine, which is Anemone's default.",
    ],
    example: "error: 'mps.dequantize' op operand #1 must be tensor of mps native type values; failed assertion `MPSGraph compile'",
};
