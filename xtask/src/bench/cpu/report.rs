//! The figures: a table for people, JSON to keep.

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::super::cell::{Cell, GENERATED};
use super::super::machine::Machine;
use super::super::models::Models;
use super::super::peer::{Measured, Peer, median};
use super::super::process::QUIET;
use super::perplexity::Compared;

/// What was measured for one kind of weights and number of threads, one entry for each round.
#[derive(Debug, Default)]
pub(super) struct Samples {
    pub(super) ours: Vec<Measured>,
    pub(super) peer: Vec<Measured>,
    pub(super) tuned: Vec<Measured>,
}

/// Everything measured so far.
pub(super) struct Report {
    machine: Machine,
    peer: String,
    cells: Vec<Value>,
    perplexity: Vec<Value>,
    table: String,
}

/// One side of a cell.
struct Side {
    all: Vec<f64>,
    median: f64,
}

impl Side {
    fn of(rounds: &[Measured], cell: &str) -> Self {
        let all: Vec<f64> = rounds.iter().filter_map(|m| m.speeds.get(cell)).flatten().copied().collect();
        Self { median: median(&all), all }
    }

    fn range(&self) -> (f64, f64) {
        let low = self.all.iter().copied().fold(f64::INFINITY, f64::min);
        (low, self.all.iter().copied().fold(0.0, f64::max))
    }

    fn json(&self) -> Value {
        let (low, high) = self.range();
        json!({"median": self.median, "lowest": low, "highest": high, "samples": self.all})
    }

    fn text(&self) -> String {
        if self.all.is_empty() {
            return "-".to_owned();
        }
        let (low, high) = self.range();
        format!("{:.0} [{low:.0}-{high:.0}]", self.median)
    }
}

impl Report {
    pub(super) fn new(machine: Machine, peer: &Peer) -> Self {
        let mut table = String::new();
        for l in &machine.by_threads {
            let _ = writeln!(
                table,
                "{} threads: {:.1} GB/s read from huge pages, {:.0} GOP/s on bytes ({})",
                l.threads,
                l.read / 1e9,
                l.bytes / 1e9,
                machine.isa
            );
        }
        let _ = writeln!(
            table,
            "\n{:<6}{:>3} {:<18}{:>20}{:>20}{:>20}{:>8}{:>8}  of the limit",
            "", "", "tokens/s", "anemone", "llama.cpp", "with huge pages", "ratio", "ratio"
        );
        Self { machine, peer: peer.version.clone(), cells: Vec::new(), perplexity: Vec::new(), table }
    }

    pub(super) fn add(&mut self, quant: &str, threads: usize, models: &Models, cells: &[Cell], samples: &Samples) {
        let foreign = [&samples.ours, &samples.peer, &samples.tuned].into_iter().flatten().map(|m| m.foreign);
        let foreign = foreign.fold(0.0, f64::max);
        let resident = |rounds: &[Measured]| rounds.iter().map(|m| m.resident).max().unwrap_or(0);
        for cell in cells {
            let name = cell.to_string();
            let [ours, peer, tuned] =
                [&samples.ours, &samples.peer, &samples.tuned].map(|rounds| Side::of(rounds, &name));
            let ratio = |other: &Side| if other.median > 0.0 { ours.median / other.median } else { 0.0 };
            let limit = self.limit(cell, threads, models, ours.median);
            let _ = writeln!(
                self.table,
                "{quant:<6}{threads:>3} {name:<18}{:>20}{:>20}{:>20}{:>8.2}{:>8.2}  {:.0} %{}",
                ours.text(),
                peer.text(),
                tuned.text(),
                ratio(&peer),
                ratio(&tuned),
                100.0 * limit.share,
                if foreign > QUIET { "  (not quiet)" } else { "" }
            );
            self.cells.push(json!({
                "weights": quant, "same_numbers": models.exact, "threads": threads, "cell": name,
                "anemone": ours.json(), "llama.cpp": peer.json(), "llama.cpp with huge pages": tuned.json(),
                "ratio": ratio(&peer), "ratio_tuned": ratio(&tuned),
                "bytes_per_token": limit.bytes, "gb_per_s": limit.bytes * ours.median / 1e9,
                "gop_per_s": limit.operations * ours.median / 1e9, "share_of_limit": limit.share,
                "foreign_share": foreign,
            }));
        }
        let megabytes = |rounds| resident(rounds) as f64 / 1e6;
        let (ours, peer, tuned) = (megabytes(&samples.ours), megabytes(&samples.peer), megabytes(&samples.tuned));
        let _ = writeln!(
            self.table,
            "{quant:<6}{threads:>3} {:<18}{ours:>20.0}{peer:>20.0}{tuned:>20.0}",
            "most resident (MB)"
        );
        let start = |name| Side::of(&samples.ours, name).median;
        self.cells.push(json!({
            "weights": quant, "threads": threads, "cell": "memory and start",
            "resident_bytes": {"anemone": resident(&samples.ours), "llama.cpp": resident(&samples.peer),
                "llama.cpp with huge pages": resident(&samples.tuned)},
            "anemone_resident_at_the_end": start("resident at the end"),
            "opened_s": start("opened (s)"), "first_token_s": start("first token (s)"),
        }));
        let end = start("resident at the end") / 1e6;
        let _ = writeln!(self.table, "{quant:<6}{threads:>3} {:<18}{end:>20.0}", "at the end (MB)");
        let _ =
            writeln!(self.table, "{quant:<6}{threads:>3} {:<18}{:>20.3}", "first token (s)", start("first token (s)"));
    }

    /// What bounds a cell: reading for single tokens, products for prompts.
    fn limit(&self, cell: &Cell, threads: usize, models: &Models, speed: f64) -> Limit {
        let limits = self.machine.limits(threads);
        // The cache is read up to each token's position.
        let middle = cell.depth as u64 + cell.prompt.unwrap_or(GENERATED) as u64 / 2;
        let bytes = (models.weight_bytes + middle * models.cache_bytes) as f64;
        // Of the layers, without the head, which only the last token of a prompt needs: SmolLM2-135M.
        const MULTIPLICATIONS: f64 = 106.2e6;
        let operations = 2.0 * MULTIPLICATIONS;
        match (limits, cell.prompt) {
            (Some(l), None) => Limit { bytes, operations, share: speed * bytes / l.read },
            (Some(l), Some(n)) => Limit { bytes: bytes / n as f64, operations, share: speed * operations / l.bytes },
            (None, _) => Limit { bytes, operations, share: 0.0 },
        }
    }

    pub(super) fn perplexity(&mut self, quant: &str, compared: Compared) {
        let Compared { ours, peer, pieces } = compared;
        let off = 100.0 * (ours / peer - 1.0);
        let _ = writeln!(self.table, "{quant:<6}    perplexity        {ours:>20.4}{peer:>20.4}   {off:+.2} %");
        self.perplexity.push(json!({"weights": quant, "anemone": ours, "llama.cpp": peer, "pieces_of_512": pieces}));
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let all = json!({
            "model": "SmolLM2-135M-Instruct", "machine": self.machine.json(), "llama.cpp": self.peer,
            "cells": self.cells, "perplexity": self.perplexity,
        });
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        Ok(std::fs::write(path, serde_json::to_string_pretty(&all)? + "\n")?)
    }

    pub(super) fn table(self) -> String {
        self.table
    }
}

/// Work for a token, and the share of what the machine gives that it takes.
struct Limit {
    bytes: f64,
    operations: f64,
    share: f64,
}
