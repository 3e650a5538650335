//! What will not run well, or not at all, on the hardware that a package is meant for: the list of rules, each a file.
//!
//! Nothing is run: a rule looks at the program and at what the package says around it. What Apple's documentation, Apple's
//! issue trackers and those of its users report is the ground of each rule; [`Rule::source`] says which.

use anemone_mil::model::Model;
use anemone_mil::place::Place;
use serde::Serialize;

mod look;
pub mod placement;
mod target;

mod angle_half;
mod axis_limit;
mod blocks_of_weights;
mod default_function;
mod dynamic_shape;
mod flexible_bounds;
mod fp32_island;
mod function_count;
mod fused_attention;
mod input_alignment;
mod int4_linear;
mod invalid;
mod linear_layer;
mod mask_infinity;
mod names;
mod nested_blocks;
mod norm_overflow;
mod off_engine;
mod op_count;
mod palette_blocks;
mod palette_scale;
mod position_range;
mod pow;
mod prefill_width;
mod producer;
mod rank;
mod silu;
mod singleton_axis;
mod specification;
mod state_alignment;
mod state_count;
mod state_differs;
mod state_dtype;
mod state_flexible;
mod state_missing;
mod state_powers;
mod state_rank;
mod state_unused;
mod too_new;
mod unsupported;
mod weight_size;

pub use look::{Look, Subject};
pub(crate) use op_count::MOST as MOST_OPERATIONS;
pub use target::{Os, Profile};
pub(crate) use weight_size::MOST as MOST_BYTES;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// It will probably be slow, or wrong in some cases.
    Warning,
    /// It will not run as meant, or give wrong results.
    Error,
}

impl Severity {
    /// The name, as reports have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }

    /// One step less bad.
    #[must_use]
    fn milder(self) -> Self {
        match self {
            Severity::Error => Severity::Warning,
            Severity::Warning | Severity::Note => Severity::Note,
        }
    }
}

/// How bad a rule's findings are, by profile; `None` where the rule does not apply.
#[derive(Clone, Copy, Debug)]
pub struct Grades {
    /// For the Neural Engine.
    pub ane: Option<Severity>,
    /// For the GPU.
    pub gpu: Option<Severity>,
    /// For any hardware.
    pub portable: Option<Severity>,
}

impl Grades {
    /// The same for every profile.
    const fn all(severity: Severity) -> Self {
        Self { ane: Some(severity), gpu: Some(severity), portable: Some(severity) }
    }

    /// For the Neural Engine alone.
    const fn ane(severity: Severity) -> Self {
        Self { ane: Some(severity), gpu: None, portable: None }
    }

    /// The same, with another severity where any hardware is meant.
    const fn portable(self, severity: Severity) -> Self {
        Self { ane: self.ane, gpu: self.gpu, portable: Some(severity) }
    }

    /// The same, with another severity for the GPU.
    const fn gpu(self, severity: Severity) -> Self {
        Self { ane: self.ane, gpu: Some(severity), portable: self.portable }
    }

    /// The severity for a profile.
    #[must_use]
    pub fn of(self, profile: Profile) -> Option<Severity> {
        match profile {
            Profile::Ane => self.ane,
            Profile::Gpu => self.gpu,
            Profile::Portable => self.portable,
        }
    }
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name in reports and on the command line.
    pub id: &'static str,
    /// What it asks for, one sentence without a full stop.
    pub asks: &'static str,
    /// Why.
    pub reason: &'static str,
    /// Where that is known from.
    pub source: &'static str,
    /// What to do about a finding.
    pub remedy: &'static str,
    /// How bad its findings are.
    pub grades: Grades,
    /// The first system that it is about; all if none.
    pub from: Option<Os>,
    check: fn(&Subject<'_>, &mut Found<'_>),
}

/// Every rule, in order of names.
pub static RULES: &[&Rule] = &[
    &angle_half::RULE,
    &axis_limit::RULE,
    &blocks_of_weights::RULE,
    &default_function::RULE,
    &dynamic_shape::RULE,
    &flexible_bounds::RULE,
    &fp32_island::RULE,
    &function_count::RULE,
    &fused_attention::RULE,
    &input_alignment::RULE,
    &int4_linear::RULE,
    &invalid::RULE,
    &linear_layer::RULE,
    &mask_infinity::RULE,
    &names::RULE,
    &nested_blocks::RULE,
    &norm_overflow::RULE,
    &off_engine::RULE,
    &op_count::RULE,
    &palette_blocks::RULE,
    &palette_scale::RULE,
    &position_range::RULE,
    &pow::RULE,
    &prefill_width::RULE,
    &producer::RULE,
    &rank::RULE,
    &silu::RULE,
    &singleton_axis::RULE,
    &specification::RULE,
    &state_alignment::RULE,
    &state_count::RULE,
    &state_differs::RULE,
    &state_dtype::RULE,
    &state_flexible::RULE,
    &state_missing::RULE,
    &state_powers::RULE,
    &state_rank::RULE,
    &state_unused::RULE,
    &too_new::RULE,
    &unsupported::RULE,
    &weight_size::RULE,
];

/// The rule named `id`.
#[must_use]
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id).copied()
}

/// What a rule found at one place.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// How bad it is here.
    pub severity: Severity,
    /// Where.
    pub place: Place,
    /// What was found.
    pub message: String,
}

/// Where a rule puts what it finds.
struct Found<'a> {
    rule: &'static Rule,
    profile: Profile,
    severity: Severity,
    all: &'a mut Vec<Finding>,
}

impl Found<'_> {
    /// The profile that is asked about.
    fn profile(&self) -> Profile {
        self.profile
    }

    fn add(&mut self, place: Place, message: impl Into<String>) {
        self.with(self.severity, place, message);
    }

    /// A finding one step less bad than the rule's others.
    fn add_milder(&mut self, place: Place, message: impl Into<String>) {
        self.with(self.severity.milder(), place, message);
    }

    fn with(&mut self, severity: Severity, place: Place, message: impl Into<String>) {
        self.all.push(Finding { rule: self.rule, severity, place, message: message.into() });
    }
}

/// Everything that the rules find in a model for a profile and a system, the worst first, in the order of rules and places.
/// Models whose weights are still to be written will do.
#[must_use]
pub fn lint(model: &Model, profile: Profile, os: Os) -> Vec<Finding> {
    let subject = Subject::new(model, os);
    let mut all = Vec::new();
    for &rule in RULES {
        if let Some(severity) = rule.grades.of(profile)
            && rule.from.is_none_or(|from| os >= from)
        {
            (rule.check)(&subject, &mut Found { rule, profile, severity, all: &mut all });
        }
    }
    // Stable: rules and places keep their order.
    all.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_in_order_and_say_everything() {
        assert!(RULES.is_sorted_by_key(|rule| rule.id));
        for rule in RULES {
            for text in [rule.asks, rule.reason, rule.source, rule.remedy] {
                assert!(text.len() > 10, "{}: {text:?}", rule.id);
            }
            assert!(
                !rule.asks.ends_with('.') && rule.reason.ends_with('.') && rule.remedy.ends_with('.'),
                "{}",
                rule.id
            );
            assert!(Profile::ALL.iter().any(|&p| rule.grades.of(p).is_some()), "{} never applies", rule.id);
        }
    }
}
