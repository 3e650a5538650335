//! Packages of the form that Apple's article has (two states, a mask that grows, any number of tokens: the profile `gpu`)
//! against our own portable ones of the same weights.

use anemone_convert::quantize::find;
use anemone_convert::{Options, Profile};
use anyhow::{Context, Result};

use super::super::cell::Cell;
use super::super::models::{options, package};
use super::row::Row;
use super::{Bench, pair};

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let plain = bench.plain()?;
    let cells = [Cell::decode(0), Cell::decode(1024), Cell::prefill(128, 0), Cell::prefill(512, 0)];
    let mut rows = Vec::new();
    for name in ["int4", "int8"] {
        let weights = find(name).with_context(|| format!("the converter has no {name}"))?;
        let portable = package(&plain, &format!("smollm2-{name}"), Options { weights, ..options() })?;
        let as_article = Options { weights, profile: Profile::Gpu, ..options() };
        let article = package(&plain, &format!("smollm2-{name}-gpu"), as_article)?;
        rows.extend(pair::compare(bench, name, [("gpu", &article), ("portable", &portable)], &cells, 0.9)?);
    }
    Ok(rows)
}
