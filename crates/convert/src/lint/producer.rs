//! `producer`: writers of known faults.

use anemone_mil::types::DType;
use anemone_mil::{Const, Operation};

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "producer",
    asks: "The package was not written by a version with a known fault",
    reason: "Palettized 4-bit models with states, written by coremltools 9.0, crashed after 100 to 200 \
             predictions or drifted (cosine 0.03); those of 8.3 did not.",
    source: "coremltools#2716",
    remedy: "Convert anew with another version, and run a few hundred predictions before you ship it.",
    grades: Grades::all(Severity::Warning),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    let Some(version) = version(subject).filter(|version| version.starts_with("9.0")) else { return };
    for look in subject.functions.iter().filter(|look| look.function.states().next().is_some()) {
        let palettes = |op: &&Operation| op.name_of_kind == "constexpr_lut_to_dense";
        let four = look.function.body.ops.iter().filter(palettes).any(|op| {
            let bits = look.operand(op, "indices").and_then(|id| look.ty(id)).map(|ty| ty.dtype);
            bits.or(look.constant(op, "indices").map(|c| c.ty.dtype)) == Some(DType::U4)
        });
        if four {
            found.add(look.place(), format!("coremltools {version} wrote its 4-bit palettes, and it has states"));
        }
    }
}

/// The version of coremltools that wrote the package.
fn version(subject: &Subject<'_>) -> Option<String> {
    let key = "com.github.apple.coremltools.version";
    let said = subject.model.metadata.user_defined.get(key).cloned();
    let entry = |(key, value): &(Const, Const)| {
        (key.str() == Some("coremltools-version")).then(|| value.str().map(str::to_owned)).flatten()
    };
    said.or_else(|| match subject.model.program.attributes.get("buildInfo")? {
        Const::Dictionary(_, _, entries) => entries.iter().find_map(entry),
        _ => None,
    })
}
