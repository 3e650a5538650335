//! What the linter found, for programs.

use std::collections::BTreeMap;

use anemone_convert::lint::{Finding, Os, Profile, Severity};
use serde::Serialize;

use super::{Linted, half};

/// The report of a package or of several that are the parts of one model.
#[derive(Serialize)]
pub(super) struct Json<'f> {
    package: String,
    profile: Profile,
    os: Os,
    counts: Counts,
    /// Of a model in parts, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<JsonPart<'f>>,
    findings: Vec<JsonFinding<'f>>,
    /// With a text: what became of it in half floats.
    half_floats: Option<&'f half::HalfFloats>,
}

type Counts = BTreeMap<&'static str, usize>;

#[derive(Serialize)]
struct JsonPart<'f> {
    name: &'f str,
    package: String,
    counts: Counts,
}

#[derive(Serialize)]
struct JsonFinding<'f> {
    rule: &'static str,
    severity: Severity,
    /// Which of several packages has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_part: Option<&'f str>,
    function: Option<&'f str>,
    /// Index in the function's block.
    op: Option<usize>,
    kind: Option<&'f str>,
    /// The name of the operation's first result.
    result: Option<&'f str>,
    /// A part of the function or operation.
    part: Option<&'f str>,
    message: &'f str,
    remedy: &'static str,
}

fn counts<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> Counts {
    let mut counts = BTreeMap::from([("error", 0), ("warning", 0), ("note", 0)]);
    findings.into_iter().for_each(|finding| *counts.entry(finding.severity.name()).or_default() += 1);
    counts
}

impl<'f> Json<'f> {
    pub(super) fn of(
        package: String,
        profile: Profile,
        os: Os,
        linted: &'f [Linted],
        half_floats: Option<&'f half::HalfFloats>,
    ) -> Self {
        let part = |part: &'f Linted| {
            let (name, package) = (part.name.as_deref()?, part.path.display().to_string());
            Some(JsonPart { name, package, counts: counts(&part.findings) })
        };
        let all = linted.iter().flat_map(|part| part.findings.iter().map(|finding| (part.name.as_deref(), finding)));
        let findings = all.map(|(part, finding)| JsonFinding::of(part, finding)).collect();
        let counts = counts(linted.iter().flat_map(|part| &part.findings));
        Self { package, profile, os, counts, parts: linted.iter().filter_map(part).collect(), findings, half_floats }
    }
}

impl<'f> JsonFinding<'f> {
    fn of(model_part: Option<&'f str>, finding: &'f Finding) -> Self {
        let op = finding.place.ops.first();
        Self {
            rule: finding.rule.id,
            severity: finding.severity,
            model_part,
            function: finding.place.function.as_deref(),
            op: op.map(|op| op.index),
            kind: op.map(|op| op.kind.as_str()),
            result: op.map(|op| op.output.as_str()),
            part: finding.place.part.as_deref(),
            message: &finding.message,
            remedy: finding.rule.remedy,
        }
    }
}
