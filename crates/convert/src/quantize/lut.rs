//! `lut4`, `lut6`, `lut8`: palettes of 16, 64 and 256 half floats.
//!
//! Tables of 16 values are shared by four rows, which the runtime looks up without leaving its registers; those of 64 by eight,
//! of 256 by sixteen. What errs into the logits or the sum over the layers directly has more bits: the vocabulary has palettes of
//! 64 in `lut4` and integers of eight bits in `lut6`, where the values' matrices have palettes of 256 as well.

use anemone_mil::types::DType;

use super::palette::{Palette, fit};
use super::{Promise, Scheme, Text, int8, of_vocabulary};

pub(super) const LUT4: Scheme = Scheme {
    name: "lut4",
    about: "palettes of 16 values for each four rows, of 64 for the vocabulary",
    text: Text::Needed,
    choose: |t| fit(t, if of_vocabulary(t) { &SIX } else { &FOUR }),
};
pub(super) const LUT6: Scheme = Scheme {
    name: "lut6",
    about: "palettes of 64 values for each eight rows, 8 bits for the vocabulary and the values",
    text: Text::Needed,
    choose: |t| match t.name() {
        _ if of_vocabulary(t) => int8::of_vocabulary(t),
        name if name.contains("v_proj.weight") => fit(t, &EIGHT),
        _ => fit(t, &SIX_OF_8),
    },
};
pub(super) const LUT8: Scheme = Scheme {
    name: "lut8",
    about: "palettes of 256 values for each sixteen rows",
    text: Text::Useful,
    choose: |t| fit(t, &EIGHT),
};

static FOUR: Palette =
    Palette { name: "palettes of 16 for 4 rows", dtype: DType::U4, rows: 4, promise: Promise::Near(0.5) };
static SIX: Palette =
    Palette { name: "palettes of 64 for 16 rows", dtype: DType::U6, rows: 16, promise: Promise::Near(0.2) };
static SIX_OF_8: Palette = Palette { name: "palettes of 64 for 8 rows", rows: 8, ..SIX };
static EIGHT: Palette =
    Palette { name: "palettes of 256 for 16 rows", dtype: DType::U8, rows: 16, promise: Promise::Near(0.1) };

#[cfg(test)]
mod tests {
    use crate::dequantize::F32;
    use crate::quantize::{Recipe, find};
    use crate::source::Tensor;

    #[test]
    fn what_reaches_the_answer_directly_has_eight_bits_in_lut6() {
        let tensor = |name: &str, rows: usize| {
            Tensor::new(name.to_owned(), vec![rows, 576], &F32, vec![0; 4 * rows * 576].into())
        };
        let form = |engine, name: &str, rows| {
            let recipe = Recipe { scheme: find("lut6").unwrap(), rules: Vec::new(), tied: true, engine };
            let form = recipe.form(&tensor(name, rows));
            assert!(!engine || form.for_engine(), "{name}");
            (form.name(), 8.0 * recipe.bytes(&tensor(name, rows)) as f64 / (rows * 576) as f64)
        };
        let (up, bits) = form(true, "model.layers.0.mlp.up_proj.weight", 1536);
        assert_eq!(up, "palettes of 64 for 8 rows");
        assert!(bits < 6.25, "{bits}");
        assert_eq!(form(true, "model.layers.3.self_attn.v_proj.weight", 192).0, "palettes of 256 for 16 rows");
        let vocabulary = "model.embed_tokens.weight";
        assert_eq!(form(true, vocabulary, 256).0, "8-bit integers, a scale for each row");
        assert_eq!(form(false, vocabulary, 256), ("8-bit integers in blocks of 32", 8.5));
        // A rule means what it says.
        let rules = vec![crate::Rule::parse("v_proj=lut6").unwrap()];
        let recipe = Recipe { scheme: find("f16").unwrap(), rules, tied: true, engine: true };
        assert_eq!(recipe.form(&tensor("model.layers.3.self_attn.v_proj.weight", 192)).name(), up);
    }
}
