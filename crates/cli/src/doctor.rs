//! A model's examination: it runs in a process of its own, which may hang, eat memory, or be killed, and tells of each step
//! before it takes it. What is left of it is a report.

mod compare;
mod event;
mod oracle;
mod print;
mod probe;

use std::io::Result;
use std::process::Command;

use anemone_coreml::dictionary::{self, Entry};
use serde::Serialize;

use crate::watchdog::{End, Limits, Watched, watch};
pub use compare::{Likeness, likeness};
pub use event::{Event, Finding, Grade, Step};
pub use print::write_report;
pub use probe::{Probe, probe};

/// What became of an examination.
#[derive(Clone, Debug, Serialize)]
pub struct Examination {
    /// What was run: `CPU runtime`, or compute units.
    pub subject: String,
    /// The findings of the steps that were finished.
    pub findings: Vec<Finding>,
    /// The step that was under way when the process ended, if it did not get through.
    pub died_in: Option<Step>,
    /// How the process ended, and what it took.
    pub process: Watched,
    /// What the error dictionary knows of it.
    pub explanations: Vec<&'static Entry>,
}

impl Examination {
    /// The worst grade; a process that did not get through fails.
    #[must_use]
    pub fn grade(&self) -> Grade {
        let through = self.died_in.is_none() && self.process.end == End::Exited { code: 0 };
        let worst = self.findings.iter().map(|finding| finding.grade).max().unwrap_or(Grade::Fail);
        if through { worst } else { Grade::Fail }
    }
}

/// Runs a command that prints [`Event`]s, one a line, and watches it.
///
/// # Errors
/// If the process cannot be started or waited for.
pub fn examine(subject: &str, command: &mut Command, limits: &Limits) -> Result<Examination> {
    let mut findings = Vec::new();
    let mut under_way = Some(Step::Load);
    let mut finished = false;
    let process = watch(command, limits, &mut |line| match Event::parse(line) {
        Some(Event::Begin { step }) => under_way = Some(step),
        Some(Event::Found(finding)) => {
            under_way = None;
            findings.push(finding);
        }
        Some(Event::Done) => finished = true,
        // Core ML and its libraries print to standard output too.
        None => {}
    })?;
    let died_in = if finished { None } else { Some(under_way.unwrap_or(Step::Done)) };
    let explanations = explain(&process, &findings);
    Ok(Examination { subject: subject.to_owned(), findings, died_in, process, explanations })
}

/// What is known of a process that ended badly, and of what steps reported.
fn explain(process: &Watched, findings: &[Finding]) -> Vec<&'static Entry> {
    let mut text = String::new();
    if let End::Signalled { name, .. } = &process.end {
        text += name;
    }
    let failed = findings.iter().filter(|finding| finding.grade == Grade::Fail);
    failed.for_each(|finding| text += &format!("\n{}", finding.text));
    if process.end != (End::Exited { code: 0 }) {
        text += &format!("\n{}", process.stderr);
    }
    dictionary::explain(&text)
}

#[cfg(all(test, unix))]
mod tests;
