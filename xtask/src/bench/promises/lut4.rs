//! Palettes of 16 values against integers of 4 bits, both made from the same half floats.

use anemone_convert::Options;
use anemone_convert::quantize::find;
use anyhow::{Context, Result};

use super::super::cell::Cell;
use super::super::models::{options, package};
use super::row::Row;
use super::{Bench, pair};

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let plain = bench.plain()?;
    // Which values the palettes have is of no matter to the speed, so no text is read for them.
    let models = |name: &str| {
        let weights = find(name).with_context(|| format!("the converter has no {name}"))?;
        package(&plain, &format!("smollm2-{name}"), Options { weights, ..options() })
    };
    let (lut4, int4) = (models("lut4")?, models("int4")?);
    pair::compare(bench, "palettes", [("lut4", &lut4), ("int4", &int4)], &[Cell::decode(0)], 0.9)
}
