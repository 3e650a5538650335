//! `anemone lint`: what in a package will not run well on the hardware that it is meant for.

mod half;
mod json;

use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;

use anemone_convert::lint::{self, Finding, Os, Profile, RULES, Rule, Severity};
use anemone_mil::model::Model;
use anemone_mil::types::Opset;
use anyhow::{Context, Result};
use clap::Args;

use crate::exit::{Said, Usage};
use crate::{packages, terminal};
use json::Json;

/// Say what in a package will not run well, or not at all, on Apple's hardware
#[derive(Debug, Args)]
#[command(override_usage = "anemone lint [OPTIONS] <PACKAGE>\n       anemone lint --explain <RULE>")]
#[command(after_help = "Examples:
  anemone lint smollm2/
  anemone lint model.mlpackage --profile ane --os ios18
  anemone lint model.mlpackage --profile ane --strict     fail on warnings too, for CI
  anemone lint model.mlpackage --json                     every finding, for programs
  anemone lint --explain fused-attention
  anemone lint --explain all
  anemone lint model.mlpackage --with book.txt            run it in half floats too, and say what overflows

Nothing is run without --with: rules look at the program and at what the package says around it. Each rests on Apple's documentation or on \
what people reported; --explain says which. A model in parts is looked at part by part, and has one exit code.

Exit codes: 0 no errors, 1 there are errors (with --strict: any finding but notes), 2 wrong arguments.")]
pub(crate) struct Arguments {
    /// A .mlpackage, a converted folder, or the name of a cached model
    #[arg(required_unless_present = "explain")]
    package: Option<PathBuf>,
    /// The hardware that it is meant for: portable, gpu or ane [default: what the package says, else portable]
    #[arg(long, value_name = "PROFILE", value_parser = profile)]
    profile: Option<Profile>,
    /// The oldest system that it is meant for, such as ios18 or macos15 [default: the oldest that has its operations]
    #[arg(long, value_name = "OS", value_parser = os)]
    os: Option<Os>,
    /// Leave findings of this rule out; may be repeated
    #[arg(long, value_name = "RULE", value_parser = rule)]
    allow: Vec<&'static Rule>,
    /// Fail on warnings too
    #[arg(long)]
    strict: bool,
    /// Run the package on this text too, with every half float rounded as soon as it is computed, as a Neural Engine would:
    /// operations that overflow are named, and answers that change are an error
    #[arg(long, value_name = "TEXT")]
    with: Option<PathBuf>,
    /// Tokens of that text
    #[arg(long, value_name = "N", default_value_t = 32, requires = "with", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    tokens: u32,
    /// Print every finding as JSON
    #[arg(long)]
    json: bool,
    /// Say what a rule asks for, why, how that is known and what to do; `all` for every rule
    #[arg(long, value_name = "RULE", conflicts_with_all = ["package", "json"])]
    explain: Option<String>,
}

/// The profile that an argument names.
pub(crate) fn profile(name: &str) -> Result<Profile, String> {
    Profile::from_name(name).ok_or_else(|| "expected portable, gpu or ane".to_owned())
}

fn os(name: &str) -> Result<Os, String> {
    let all: Vec<&str> = Os::ALL.iter().flat_map(|os| [os.names().0, os.names().1]).collect();
    Os::from_name(name).ok_or_else(|| format!("expected {}", all.join(", ")))
}

fn rule(id: &str) -> Result<&'static Rule, String> {
    lint::find(id).ok_or_else(|| "there is no such rule; `anemone lint --explain all` lists them".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    if let Some(id) = &arguments.explain {
        explain(id, &mut out)?;
        return Ok(out.flush()?);
    }
    let package = arguments.package.as_ref().context("clap asks for a package")?;
    let opened = packages::open(package)?;
    let profile = arguments.profile.unwrap_or_else(|| declared_profile(&opened.parts[0].model));
    let oldest = opened.parts.iter().map(|part| oldest(&part.model)).max();
    let os = arguments.os.or(oldest).unwrap_or(Os::Ios18);
    let allowed = |finding: &Finding| !arguments.allow.iter().any(|rule| rule.id == finding.rule.id);
    let parts = opened.parts.into_iter().map(|part| {
        let findings = lint::lint(&part.model, profile, os).into_iter().filter(allowed).collect();
        Linted { name: part.name, path: part.path, findings }
    });
    let parts: Vec<Linted> = parts.collect();
    let path = if let [one] = &parts[..] { one.path.clone() } else { opened.path };
    let half = arguments.with.as_ref().map(|text| half::run(&path, text, arguments.tokens as usize)).transpose()?;
    if arguments.json {
        let report = Json::of(path.display().to_string(), profile, os, &parts, half.as_ref());
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        let several = if parts.len() > 1 { format!("{} parts, ", parts.len()) } else { String::new() };
        writeln!(out, "{}: {several}profile {profile}, {os} or later", path.display())?;
        print(&parts, &mut out)?;
        half.iter().try_for_each(|half| half.print(&mut out))?;
    }
    out.flush()?;
    let worst = parts.iter().flat_map(|part| &part.findings).map(|finding| finding.severity).max();
    let least = if arguments.strict { Severity::Warning } else { Severity::Error };
    let broken = half.is_some_and(|half| half.is_bad() || (arguments.strict && half.overflows()));
    if worst >= Some(least) || broken { Err(Said.into()) } else { Ok(()) }
}

/// What was found in one package.
struct Linted {
    /// What to call it among several.
    name: Option<String>,
    path: PathBuf,
    findings: Vec<Finding>,
}

/// The profile that a package says it was made for.
fn declared_profile(model: &Model) -> Profile {
    let said = model.metadata.user_defined.get("anemone.profile");
    said.and_then(|name| Profile::from_name(name)).unwrap_or(Profile::Portable)
}

/// The oldest system that has the operations of a model.
fn oldest(model: &Model) -> Os {
    let opsets = model.program.functions.values().filter_map(|f| Opset::from_name(&f.opset));
    opsets.max().map_or(Os::Ios18, Os::with)
}

/// The findings of each package, and of several what they come to.
fn print(parts: &[Linted], out: &mut dyn Write) -> Result<()> {
    for part in parts {
        if let Some(name) = &part.name {
            let found = summary(&part.findings);
            writeln!(out, "\n{}", terminal::bold(&format!("part {}: {found}", terminal::printable(name))))?;
        }
        print_groups(&part.findings, out)?;
    }
    let all: Vec<&Finding> = parts.iter().flat_map(|part| &part.findings).collect();
    let Some(first) = all.first() else {
        let gap = if parts.len() > 1 { "\n" } else { "" };
        writeln!(out, "{gap}nothing was found ({} rules)", RULES.len())?;
        return Ok(());
    };
    let with = parts.iter().filter(|part| !part.findings.is_empty()).count();
    let of_parts = if parts.len() > 1 { format!(" in {with} of {} parts", parts.len()) } else { String::new() };
    writeln!(out, "\n{}{of_parts}. Try: anemone lint --explain {}", summary(all.iter().copied()), first.rule.id)?;
    Ok(())
}

/// Findings of each rule and severity together, the worst first.
fn print_groups(findings: &[Finding], out: &mut dyn Write) -> Result<()> {
    for group in groups(findings) {
        let first = group[0];
        let times = if group.len() == 1 { String::new() } else { format!(", {} times", group.len()) };
        writeln!(out, "\n{} {}{times}: {}", first.severity.name(), first.rule.id, first.rule.asks)?;
        for finding in group.iter().take(SHOWN) {
            let message = terminal::printable(&finding.message);
            writeln!(out, "  {}: {message}", terminal::printable(&finding.place.to_string()))?;
        }
        if group.len() > SHOWN {
            writeln!(out, "  … and {} more (--json has them)", group.len() - SHOWN)?;
        }
        writeln!(out, "  → {}", first.rule.remedy)?;
    }
    Ok(())
}

/// Places that are shown of each rule.
const SHOWN: usize = 3;

/// Findings of one rule and severity, in order.
pub(crate) fn groups(findings: &[Finding]) -> Vec<Vec<&Finding>> {
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in findings {
        let same =
            |group: &&mut Vec<&Finding>| (group[0].rule.id, group[0].severity) == (finding.rule.id, finding.severity);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

/// How many findings of each severity, in words.
pub(crate) fn summary<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> String {
    let severities: Vec<Severity> = findings.into_iter().map(|finding| finding.severity).collect();
    let count = |severity| severities.iter().filter(|&&found| found == severity).count();
    let words = [Severity::Error, Severity::Warning, Severity::Note].into_iter().filter_map(|severity| {
        let n = count(severity);
        (n > 0).then(|| format!("{n} {}{}", severity.name(), if n == 1 { "" } else { "s" }))
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "nothing was found".to_owned() } else { words.join(", ") }
}

fn explain(id: &str, out: &mut dyn Write) -> Result<()> {
    if id == "all" {
        for rule in RULES {
            writeln!(out, "{:<18} {}", rule.id, rule.asks)?;
        }
        return Ok(());
    }
    let rule = lint::find(id)
        .ok_or_else(|| Usage(format!("there is no rule `{id}`; `anemone lint --explain all` lists them")))?;
    let grade = |profile| rule.grades.of(profile).map_or("no matter", Severity::name);
    writeln!(out, "{}: {}\n", rule.id, rule.asks)?;
    writeln!(out, "Why:      {}", rule.reason)?;
    writeln!(out, "Source:   {}", rule.source)?;
    writeln!(out, "Remedy:   {}", rule.remedy)?;
    let grades: Vec<String> = Profile::ALL.iter().map(|&p| format!("{p} {}", grade(p))).collect();
    writeln!(out, "Severity: {}", grades.join(", "))?;
    if let Some(from) = rule.from {
        writeln!(out, "Since:    {from}")?;
    }
    Ok(())
}
