//! What `inspect` says of a model in parts.

use std::io::{Result, Write};

use anemone::ChainStep;
use anemone_cli::units;
use serde::Serialize;

use super::Report;
use crate::packages::Opened;
use crate::terminal::{bold, printable};

/// What the parts of a model hold, and how they follow each other.
#[derive(Debug, Serialize)]
pub(crate) struct Overview {
    path: String,
    /// In the order in which they run.
    parts: Vec<PartReport>,
    /// Bytes of all weights.
    weight_bytes: u64,
    /// Bytes of the states of one conversation.
    state_bytes: u64,
    /// How the model is called, by the number of tokens.
    steps: Vec<StepReport>,
    /// Why no conversation can be held with these parts.
    misfits: Vec<String>,
}

#[derive(Debug, Serialize)]
struct PartReport {
    name: String,
    #[serde(flatten)]
    report: Report,
}

#[derive(Debug, Serialize)]
struct StepReport {
    tokens: usize,
    /// Whether logits come of it.
    logits: bool,
    calls: Vec<CallReport>,
}

#[derive(Debug, Serialize)]
struct CallReport {
    part: String,
    function: String,
    /// Inputs that the host feeds it with.
    from_host: Vec<String>,
    /// Inputs that the part before feeds it with.
    from_before: Vec<String>,
    gives: Vec<String>,
}

impl Overview {
    /// `reports` are those of the parts.
    pub(crate) fn of(opened: &Opened, reports: Vec<Report>) -> Self {
        let names: Vec<String> = opened.parts.iter().map(|part| part.name.clone().unwrap_or_default()).collect();
        let models: Vec<_> = opened.parts.iter().map(|part| &part.model).collect();
        let (steps, misfits) = match anemone::chain(&models) {
            Ok(steps) => (steps.into_iter().map(|step| StepReport::of(step, &names)).collect(), Vec::new()),
            Err(misfits) => (Vec::new(), misfits.into_iter().flat_map(|misfit| misfit.missing).collect()),
        };
        let states = |report: &Report| report.functions.iter().map(|f| f.state_bytes).max().unwrap_or(0);
        Self {
            path: opened.path.display().to_string(),
            weight_bytes: reports.iter().map(|report| report.weights.bytes).sum(),
            state_bytes: reports.iter().map(states).sum(),
            parts: names.into_iter().zip(reports).map(|(name, report)| PartReport { name, report }).collect(),
            steps,
            misfits,
        }
    }

    pub(crate) fn print(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{}", bold(&printable(&self.path)))?;
        let (count, weights) = (self.parts.len(), units::bytes(self.weight_bytes));
        writeln!(
            out,
            "  {count} parts, {weights} of weights, {} of states for each conversation",
            units::bytes(self.state_bytes)
        )?;
        if let Some(context) = self.parts.iter().find_map(|part| part.report.context) {
            writeln!(out, "  context {context} positions, baked into the shape of the cache")?;
        }
        for PartReport { name, report } in &self.parts {
            let head = bold(&printable(name));
            writeln!(out, "\n{head}  {} of weights", units::bytes(report.weights.bytes))?;
            for f in &report.functions {
                let operations = units::counted(f.operations.values().sum::<usize>(), "operation");
                writeln!(out, "  function {}, {operations}", printable(&f.name))?;
                let ports = |ports: &[super::PortReport]| {
                    let port = |p: &super::PortReport| {
                        format!("{} {} {}", printable(&p.name), p.dtype.unwrap_or("?"), p.shape)
                    };
                    ports.iter().map(port).collect::<Vec<_>>().join(", ")
                };
                writeln!(out, "    takes {}", ports(&f.inputs))?;
                writeln!(out, "    gives {}", ports(&f.outputs))?;
                for s in &f.states {
                    let size = units::bytes(s.bytes);
                    writeln!(out, "    state {} {} {:?}, {size}", printable(&s.name), s.dtype, s.shape)?;
                }
            }
        }
        if !self.steps.is_empty() {
            writeln!(out, "\n{}", bold("one after the other"))?;
        }
        for step in &self.steps {
            let what = if step.logits { "" } else { ", no logits" };
            writeln!(out, "  {} a call{what}", units::counted(step.tokens, "token"))?;
            for call in &step.calls {
                let before = call.from_before.iter().map(|name| format!("{name} of the part before"));
                let takes: Vec<String> = before.chain(call.from_host.iter().cloned()).collect();
                let (part, function) = (printable(&call.part), printable(&call.function));
                let (takes, gives) = (printable(&takes.join(", ")), printable(&call.gives.join(", ")));
                writeln!(out, "    {part} {function}: {takes} → {gives}")?;
            }
        }
        super::print::list("no conversation can be held with these parts", &self.misfits, out)?;
        for part in self.parts.iter() {
            let head = format!("{} cannot run here", printable(&part.name));
            super::print::list(&head, &part.report.problems, out)?;
        }
        Ok(())
    }
}

impl StepReport {
    fn of(step: ChainStep, names: &[String]) -> Self {
        let calls = step.calls.into_iter().zip(names).map(|(call, part)| CallReport {
            part: part.clone(),
            function: call.function,
            from_host: call.from_host,
            from_before: call.from_before,
            gives: call.gives,
        });
        let calls: Vec<CallReport> = calls.collect();
        Self { tokens: step.tokens, logits: calls.len() == names.len(), calls }
    }
}
