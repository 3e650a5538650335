//! `anemone lint`: what in a package will not run well on the hardware that it is meant for.

mod half;

use std::collections::BTreeMap;
use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;

use anemone_convert::lint::{self, Finding, Os, Profile, RULES, Rule, Severity};
use anemone_mil::model::Model;
use anemone_mil::types::Opset;
use anemone_package::Package;
use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use crate::exit::{Said, Usage};
use crate::{packages, terminal};

/// Say what in a package will not run well, or not at all, on Apple's hardware
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  anemone lint smollm2/
  anemone lint model.mlpackage --profile ane --os ios18
  anemone lint model.mlpackage --profile ane --strict     fail on warnings too, for CI
  anemone lint model.mlpackage --json                     every finding, for programs
  anemone lint --explain fused-attention
  anemone lint --explain all
  anemone lint model.mlpackage --with book.txt            run it in half floats too, and say what overflows

Nothing is run without --with: rules look at the program and at what the package says around it. Each rests on Apple's documentation or on \
what people reported; --explain says which.

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
    let path = arguments.package.as_ref().context("clap asks for a package")?;
    let path = packages::find(path)?;
    let package = Package::open(&path)?;
    let model = anemone_mil::decode(&package).with_context(|| path.display().to_string())?;
    let profile = arguments.profile.unwrap_or_else(|| declared_profile(&model));
    let os = arguments.os.unwrap_or_else(|| oldest(&model));
    let mut findings = lint::lint(&model, profile, os);
    findings.retain(|finding| !arguments.allow.iter().any(|rule| rule.id == finding.rule.id));
    let half = arguments.with.as_ref().map(|text| half::run(&path, text, arguments.tokens as usize)).transpose()?;
    if arguments.json {
        let report = Json::of(path.display().to_string(), profile, os, &findings, half.as_ref());
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        writeln!(out, "{}: profile {profile}, {os} or later", path.display())?;
        print(&findings, &mut out)?;
        half.iter().try_for_each(|half| half.print(&mut out))?;
    }
    out.flush()?;
    let worst = findings.iter().map(|finding| finding.severity).max();
    let least = if arguments.strict { Severity::Warning } else { Severity::Error };
    let broken = half.is_some_and(|half| half.is_bad() || (arguments.strict && half.overflows()));
    if worst >= Some(least) || broken { Err(Said.into()) } else { Ok(()) }
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

/// Findings of each rule and severity together, the worst first.
pub(crate) fn print(findings: &[Finding], out: &mut dyn Write) -> Result<()> {
    if findings.is_empty() {
        writeln!(out, "nothing was found ({} rules)", RULES.len())?;
        return Ok(());
    }
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
    writeln!(out, "\n{}. Try: anemone lint --explain {}", summary(findings), findings[0].rule.id)?;
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
pub(crate) fn summary(findings: &[Finding]) -> String {
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
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

#[derive(Serialize)]
struct Json<'f> {
    package: String,
    profile: Profile,
    os: Os,
    counts: BTreeMap<&'static str, usize>,
    findings: Vec<JsonFinding<'f>>,
    /// With a text: what became of it in half floats.
    half_floats: Option<&'f half::HalfFloats>,
}

#[derive(Serialize)]
struct JsonFinding<'f> {
    rule: &'static str,
    severity: Severity,
    function: Option<&'f str>,
    /// Index in the function's block.
    op: Option<usize>,
    kind: Option<&'f str>,
    /// The name of the operation's first result.
    result: Option<&'f str>,
    part: Option<&'f str>,
    message: &'f str,
    remedy: &'static str,
}

impl<'f> Json<'f> {
    fn of(
        package: String,
        profile: Profile,
        os: Os,
        findings: &'f [Finding],
        half_floats: Option<&'f half::HalfFloats>,
    ) -> Self {
        let mut counts = BTreeMap::from([("error", 0), ("warning", 0), ("note", 0)]);
        findings.iter().for_each(|finding| *counts.entry(finding.severity.name()).or_default() += 1);
        let finding = |f: &'f Finding| {
            let op = f.place.ops.first();
            JsonFinding {
                rule: f.rule.id,
                severity: f.severity,
                function: f.place.function.as_deref(),
                op: op.map(|op| op.index),
                kind: op.map(|op| op.kind.as_str()),
                result: op.map(|op| op.output.as_str()),
                part: f.place.part.as_deref(),
                message: &f.message,
                remedy: f.rule.remedy,
            }
        };
        Self { package, profile, os, counts, findings: findings.iter().map(finding).collect(), half_floats }
    }
}
