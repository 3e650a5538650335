//! The report as text.

use std::collections::BTreeMap;
use std::io::{Result, Write};

use anemone_cli::units;

use super::weights::Sum;
use super::{FunctionReport, PortReport, Report};
use crate::terminal::{bold, printable};

/// Problems beyond these are only counted.
const SHOWN: usize = 50;

impl Report {
    pub(crate) fn print(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{}", bold(&printable(&self.path)))?;
        writeln!(out, "  specification {}, sha256 {}", self.specification_version, self.sha256)?;
        if let Some(context) = self.context {
            writeln!(out, "  context {context} positions, baked into the shape of the cache")?;
        }
        for f in &self.functions {
            let is_default = self.functions.len() > 1 && f.name == self.default_function;
            f.print(is_default, out)?;
        }
        writeln!(out, "\n{}", bold("weights"))?;
        let what = units::counted(self.weights.tensors, "tensor");
        writeln!(out, "  {what}, {}", units::bytes(self.weights.bytes))?;
        sums("in files", &self.weights.stored, out)?;
        sums("in the program", &self.weights.inline, out)?;
        self.print_metadata(out)?;
        list("holds beyond what Anemone knows", &self.left_out, out)?;
        list("cannot run here", &self.problems, out)
    }

    fn print_metadata(&self, out: &mut dyn Write) -> Result<()> {
        let m = &self.metadata;
        let own =
            [("description", &m.description), ("author", &m.author), ("license", &m.license), ("version", &m.version)];
        let user_defined = m.user_defined.iter().map(|(key, value)| (key.as_str(), value));
        let all: Vec<_> = own.into_iter().chain(user_defined).filter(|(_, value)| !value.is_empty()).collect();
        if all.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{}", bold("metadata"))?;
        let width = all.iter().map(|(key, _)| key.chars().count()).max().unwrap_or(0);
        for (key, value) in all {
            let value = printable(value).replace('\n', " ");
            writeln!(out, "  {:width$}  {value}", printable(key))?;
        }
        Ok(())
    }
}

impl FunctionReport {
    fn print(&self, is_default: bool, out: &mut dyn Write) -> Result<()> {
        let default = if is_default { ", the default" } else { "" };
        let os = self.os.map_or_else(String::new, |os| format!(" ({os})"));
        let head = bold(&format!("function {}", printable(&self.name)));
        writeln!(out, "\n{head}{default}, operation set {}{os}", printable(&self.opset))?;
        ports("inputs", &self.inputs, out)?;
        ports("outputs", &self.outputs, out)?;
        if self.states.is_empty() {
            writeln!(out, "  states: none")?;
        } else {
            let total = units::bytes(self.state_bytes);
            writeln!(out, "  states, {total} for each conversation")?;
            for s in &self.states {
                let size = units::bytes(s.bytes);
                line(out, &s.name, &format!("{} {:?}, {size}", s.dtype, s.shape), &s.description)?;
            }
        }
        let total = self.operations.values().sum();
        writeln!(out, "  {}", units::counted(total, "operation"))?;
        let mut by_count: Vec<_> = self.operations.iter().collect();
        by_count.sort_by_key(|&(name, n)| (std::cmp::Reverse(*n), name));
        for (name, n) in by_count {
            writeln!(out, "    {:>6}  {}", units::count(*n as u64), printable(name))?;
        }
        Ok(())
    }
}

fn ports(what: &str, all: &[PortReport], out: &mut dyn Write) -> Result<()> {
    writeln!(out, "  {what}{}", if all.is_empty() { ": none" } else { "" })?;
    for p in all {
        let image = if p.kind == "multiArrayType" { String::new() } else { format!(" ({})", p.kind) };
        let optional = if p.optional { ", optional" } else { "" };
        let ty = format!("{} {}{image}{optional}", p.dtype.unwrap_or("?"), p.shape);
        line(out, &p.name, &ty, &p.description)?;
    }
    Ok(())
}

fn line(out: &mut dyn Write, name: &str, ty: &str, description: &str) -> Result<()> {
    let text = format!("    {:16} {ty:32} {}", printable(name), printable(description).replace('\n', " "));
    writeln!(out, "{}", text.trim_end())
}

fn sums(place: &str, all: &BTreeMap<&str, Sum>, out: &mut dyn Write) -> Result<()> {
    let mut by_size: Vec<_> = all.iter().collect();
    by_size.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bytes));
    for (dtype, sum) in by_size {
        let (elements, bytes) = (units::count(sum.elements), units::bytes(sum.bytes));
        let tensors = units::counted(sum.tensors, "tensor");
        writeln!(out, "    {dtype:10} {bytes:>10}  {tensors} of {elements} elements {place}")?;
    }
    Ok(())
}

pub(super) fn list(head: &str, all: &[String], out: &mut dyn Write) -> Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", bold(head))?;
    for text in all.iter().take(SHOWN) {
        writeln!(out, "  {}", printable(text))?;
    }
    if all.len() > SHOWN {
        writeln!(out, "  and {} more", all.len() - SHOWN)?;
    }
    Ok(())
}
