//! The placement for people.

use std::collections::BTreeMap;
use std::io::{Result, Write};

use anemone_coreml::{ComputeUnits, DeviceKind};

use super::{FunctionPlacement, InParts, Line, Placement, Source};
use crate::text::{printable, wrapped};
use crate::units::counted;

/// Writes a placement. All operations off the Neural Engine are listed one by one if `all`, by kind and reason if not.
///
/// # Errors
/// Those of the output.
pub fn write_report(out: &mut impl Write, placement: &Placement, all: bool) -> Result<()> {
    write_source(out, placement.source, placement.units)?;
    placement.functions.iter().try_for_each(|function| write_function(out, function, all))
}

/// Writes the placement of a model in parts: that of each, then of the calls through all of them. As [`write_report`].
///
/// # Errors
/// Those of the output.
pub fn write_in_parts(out: &mut impl Write, placement: &InParts, all: bool) -> Result<()> {
    write_source(out, placement.source, placement.units)?;
    for part in &placement.parts {
        writeln!(out, "\npart {}", printable(&part.name))?;
        part.functions.iter().try_for_each(|function| write_function(out, function, all))?;
    }
    writeln!(out, "\nin all {} parts", placement.parts.len())?;
    for total in &placement.total {
        let (operations, devices) = (counted(total.operations, "operation"), listed(&total.devices));
        let share = percent(total.neural_engine_share);
        writeln!(out, "  {}: {operations} that run: {devices}; {share} on the Neural Engine", total.call)?;
    }
    Ok(())
}

fn write_source(out: &mut impl Write, source: Source, units: ComputeUnits) -> Result<()> {
    match source {
        Source::ComputePlan => writeln!(out, "Core ML's plan on this machine, for {units}"),
        Source::Prediction => writeln!(out, "A prediction for {units}, from the program alone: no hardware was asked"),
    }
}

fn listed(devices: &BTreeMap<DeviceKind, usize>) -> String {
    devices.iter().map(|(device, count)| format!("{device} {count}")).collect::<Vec<_>>().join(", ")
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn write_function(out: &mut impl Write, function: &FunctionPlacement, all: bool) -> Result<()> {
    writeln!(
        out,
        "\n{}: {} that run: {}",
        printable(&function.name),
        counted(function.operations, "operation"),
        listed(&function.devices)
    )?;
    write!(out, "  on the Neural Engine  {} of the operations", percent(function.neural_engine_share))?;
    match function.neural_engine_cost_share {
        Some(share) => writeln!(out, ", {} of the estimated cost", percent(share))?,
        None => writeln!(out)?,
    }
    if function.state_operations.is_empty() {
        writeln!(out, "  states                none are read or written")?;
    } else {
        for (what, lines) in by(&function.state_operations, |line| (line.operation.clone(), line.device)) {
            writeln!(out, "  {:20}  {} on the {}", what.0, lines.len(), what.1)?;
        }
    }
    if function.elsewhere.is_empty() {
        return Ok(());
    }
    writeln!(out, "  elsewhere:")?;
    if all {
        for line in &function.elsewhere {
            write_reason(
                out,
                &format!("{} {}", line.operation, printable(&line.gives)),
                line.device.name(),
                &line.reason,
            )?;
        }
        return Ok(());
    }
    for (what, lines) in by(&function.elsewhere, |line| (line.operation.clone(), line.device, line.reason.clone())) {
        let (operation, device, reason) = what;
        let first = printable(&lines[0].gives);
        let which =
            if lines.len() == 1 { format!("{operation} {first}") } else { format!("{} × {operation}", lines.len()) };
        write_reason(out, &which, device.name(), &reason)?;
    }
    Ok(())
}

fn write_reason(out: &mut impl Write, which: &str, device: &str, reason: &str) -> Result<()> {
    let reason = if reason.is_empty() { "no reason is known here" } else { reason };
    let text = format!("{which} on the {device}: {reason}");
    for (i, line) in wrapped(&text, 6).iter().enumerate() {
        writeln!(out, "{}{line}", if i == 0 { "    " } else { "      " })?;
    }
    Ok(())
}

fn by<K: Ord>(lines: &[Line], key: impl Fn(&Line) -> K) -> BTreeMap<K, Vec<&Line>> {
    let mut groups: BTreeMap<K, Vec<&Line>> = BTreeMap::new();
    lines.iter().for_each(|line| groups.entry(key(line)).or_default().push(line));
    groups
}
