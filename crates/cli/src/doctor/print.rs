//! The report for people.

use std::io::{Result, Write};

use super::{Examination, Grade};
use crate::host::Host;
use crate::text::wrapped;
use crate::units::bytes;
use crate::watchdog::End;

fn mark(grade: Grade) -> &'static str {
    match grade {
        Grade::Ok => "ok",
        Grade::Warning => "odd",
        Grade::Fail => "FAIL",
    }
}

/// Writes what is known of the machine and what became of the examinations.
///
/// # Errors
/// Those of the output.
pub fn write_report(out: &mut impl Write, host: &Host, examinations: &[Examination]) -> Result<()> {
    let known = |size: Option<u64>| size.map_or_else(|| "not told".to_owned(), bytes);
    writeln!(out, "Machine")?;
    writeln!(out, "  system         {}", host.system)?;
    writeln!(out, "  processor      {}, {} threads, {} kernels", host.processor, host.threads, host.instructions)?;
    writeln!(out, "  memory         {}", known(host.memory))?;
    writeln!(out, "  free disk      {}", known(host.free_disk))?;
    writeln!(out, "  heat           {}", host.heat.words())?;
    let engine = host.devices.iter().find(|device| device.kind == anemone_coreml::DeviceKind::NeuralEngine);
    let engine = match engine {
        None => "not on this machine".to_owned(),
        Some(device) => device.cores.map_or_else(|| "yes".to_owned(), |cores| format!("{cores} cores")),
    };
    writeln!(out, "  Neural Engine  {engine}")?;
    for examination in examinations {
        write_examination(out, examination)?;
    }
    Ok(())
}

fn write_examination(out: &mut impl Write, examination: &Examination) -> Result<()> {
    writeln!(out, "\n{}, in a process of its own", examination.subject)?;
    for finding in &examination.findings {
        let name = finding.step.name();
        let lines = wrapped(&finding.text, 24);
        for (i, line) in lines.iter().enumerate() {
            match i {
                0 => writeln!(out, "  {:4}  {name:14}  {line}", mark(finding.grade))?,
                _ => writeln!(out, "  {:22}  {line}", "")?,
            }
        }
    }
    let process = &examination.process;
    let said = match &process.end {
        End::Exited { code: 0 } if examination.died_in.is_none() => None,
        // The finding has said why.
        End::Exited { .. } if examination.findings.iter().any(|finding| finding.grade == Grade::Fail) => None,
        End::Exited { code } => Some(format!("ended with code {code}")),
        End::Signalled { name, .. } => Some(format!("was killed by {name}")),
        End::TooLong { silent: true, seconds } => Some(format!("said nothing for {seconds} s, and was ended")),
        End::TooLong { silent: false, seconds } => Some(format!("took longer than {seconds} s, and was ended")),
        End::TooLarge { bytes: held, limit } => {
            Some(format!("held {}, more than the {} allowed, and was ended", bytes(*held), bytes(*limit)))
        }
    };
    if let Some(said) = said {
        let step = examination.died_in.map_or_else(String::new, |step| format!(" during the step `{}`", step.name()));
        writeln!(out, "  FAIL  the process {said}{step}")?;
        for line in process.stderr.lines().rev().take(8).collect::<Vec<_>>().into_iter().rev() {
            writeln!(out, "        | {}", crate::text::printable(line))?;
        }
    }
    writeln!(out, "  {:.1} s, at most {} of memory", process.seconds, bytes(process.peak_memory))?;
    for entry in &examination.explanations {
        writeln!(out, "\n  {} (`anemone explain {}`)", entry.title, entry.name)?;
        wrapped(entry.cause, 4).iter().try_for_each(|line| writeln!(out, "    {line}"))?;
        writeln!(out, "    Try: {}", entry.remedies[0])?;
    }
    Ok(())
}
