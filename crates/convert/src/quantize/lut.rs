//! `lut4`, `lut6`, `lut8`: palettes of 16, 64 and 256 half floats.
//!
//! Tables of 16 values are shared by four rows, which the runtime looks up without leaving its registers; larger ones by
//! sixteen. The vocabulary, whose errors reach the logits directly, has more bits: palettes of 64 in `lut4`, eight bits with a
//! scale for each row in `lut6`.

use anemone_mil::types::DType;

use super::palette::{Palette, fit};
use super::{Form, Promise, Scheme, Text, int8, of_vocabulary};

pub(super) const LUT4: Scheme = Scheme {
    name: "lut4",
    about: "palettes of 16 values for each four rows, of 64 for the vocabulary",
    text: Text::Needed,
    choose: |t| fit(t, if of_vocabulary(t) { &SIX } else { &FOUR }),
};
pub(super) const LUT6: Scheme = Scheme {
    name: "lut6",
    about: "palettes of 64 values for each sixteen rows, 8-bit integers for the vocabulary",
    text: Text::Needed,
    choose: |t| if of_vocabulary(t) { Form::Blocks(&int8::ROWS) } else { fit(t, &SIX) },
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
static EIGHT: Palette =
    Palette { name: "palettes of 256 for 16 rows", dtype: DType::U8, rows: 16, promise: Promise::Near(0.1) };
