//! The table for people.

use std::io::{Result, Write};

use super::{Bench, Column, Measured, Outcome};
use crate::host::Heat;
use crate::text::{printable, wrapped};
use crate::units::bytes;

/// Writes everything that was measured.
///
/// # Errors
/// Those of the output.
pub fn write_table(out: &mut impl Write, bench: &Bench) -> Result<()> {
    let plan = &bench.plan;
    writeln!(out, "{} on {}, {}", printable(&bench.model), bench.machine.processor, bench.machine.system)?;
    writeln!(out, "a prompt of {} tokens, then {} tokens one by one\n", plan.prompt, plan.tokens)?;
    let name = |column: &Column| column.subject.chars().count();
    let width = bench.columns.iter().map(name).max().unwrap_or(0).max(8);
    writeln!(
        out,
        "{:width$}  {:>9}  {:>11}  {:>9}  {:>9}  {:>8}  {:>9}  heat",
        "", "load", "first token", "per token", "p95", "tokens/s", "memory"
    )?;
    for column in &bench.columns {
        write!(out, "{:width$}  ", column.subject)?;
        match &column.outcome {
            Outcome::Measured(m) => write_row(out, m)?,
            Outcome::Absent(why) => writeln!(out, "{why}")?,
            Outcome::Failed(why) => {
                let lines = wrapped(why, width + 10);
                writeln!(out, "failed: {}", printable(&lines.join(&format!("\n{:1$}", "", width + 10))))?;
            }
        }
    }
    for column in &bench.columns {
        if let Outcome::Measured(m) = &column.outcome {
            write_curve(out, &column.subject, m)?;
            write_turns(out, &column.subject, m)?;
        }
    }
    Ok(())
}

fn time(seconds: f64) -> String {
    if seconds < 10.0 { format!("{:.1} ms", seconds * 1000.0) } else { format!("{seconds:.1} s") }
}

fn write_row(out: &mut impl Write, m: &Measured) -> Result<()> {
    let memory = m.memory.map_or_else(|| "-".to_owned(), bytes);
    let heat = m.curve.last().map(|point| &point.heat).filter(|heat| heat.is_known());
    let heat = heat.map_or_else(|| "-".to_owned(), Heat::words);
    writeln!(
        out,
        "{:>9}  {:>11}  {:>9}  {:>9}  {:>8.1}  {memory:>9}  {heat}",
        time(m.load),
        time(m.first_token),
        time(m.per_token_median),
        time(m.per_token_p95),
        m.tokens_per_second,
    )
}

fn write_curve(out: &mut impl Write, subject: &str, m: &Measured) -> Result<()> {
    let rates: Vec<String> = m.curve.iter().map(|point| format!("{:.0}", point.tokens_per_second)).collect();
    writeln!(out, "\n{subject}, tokens/s under load: {}", rates.join(" "))?;
    if let (Some(first), Some(last)) = (m.curve.first(), m.curve.last()) {
        let change = (last.tokens_per_second / first.tokens_per_second - 1.0) * 100.0;
        let heat = match first.heat.is_known() || last.heat.is_known() {
            true => format!("{} at first, {} at the end", first.heat.words(), last.heat.words()),
            false => first.heat.words(),
        };
        writeln!(out, "  {change:+.0} % from the first {} tokens to the last; heat: {heat}", first.tokens)?;
        let energy = match (m.energy, m.energy_missing) {
            (Some(joules), _) => {
                format!("{:.2} J a token, of all the machine's processors", joules / last.tokens.max(1) as f64)
            }
            (None, why) => why.unwrap_or("not told by this system").to_owned(),
        };
        writeln!(out, "  energy: {energy}")?;
    }
    Ok(())
}

fn write_turns(out: &mut impl Write, subject: &str, m: &Measured) -> Result<()> {
    writeln!(out, "\n{subject}, time to the first token of a turn:")?;
    writeln!(
        out,
        "  {:>4}  {:>6}  {:>4}  {:>12}  {:>12}  {:>6}",
        "turn", "before", "new", "cache kept", "read again", ""
    )?;
    for (i, turn) in m.turns.iter().enumerate() {
        writeln!(
            out,
            "  {:>4}  {:>6}  {:>4}  {:>12}  {:>12}  {:>5.1}×",
            i + 1,
            turn.before,
            turn.new,
            time(turn.kept),
            time(turn.again),
            turn.again / turn.kept
        )?;
    }
    Ok(())
}
