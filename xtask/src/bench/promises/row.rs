//! One comparison: samples of ours and of others, and what was asked.

use std::fmt::Write;

use serde_json::{Value, json};

use super::super::peer::median;
use super::super::process::QUIET;

/// Which of two figures is the better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Better {
    Less,
    More,
}

/// What must hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Asked {
    /// Ours is so many times as good as the first of the others, at least.
    Times(f64),
    /// Ours is no more than this.
    AtMost(f64),
}

/// Samples under a name.
#[derive(Debug, Clone, Default)]
pub(super) struct Side {
    pub(super) name: String,
    pub(super) samples: Vec<f64>,
}

impl Side {
    pub(super) fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), samples: Vec::new() }
    }

    fn median(&self) -> f64 {
        median(&self.samples)
    }
}

/// One comparison.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// What was measured, with the weights and threads.
    pub(super) what: String,
    pub(super) unit: &'static str,
    pub(super) better: Better,
    /// Ours is the first.
    pub(super) sides: Vec<Side>,
    pub(super) asked: Option<Asked>,
    /// The share of the processor that others took meanwhile.
    pub(super) foreign: f64,
    /// What else is worth knowing.
    pub(super) more: Value,
}

impl Row {
    /// How many times as good ours is, by the others' order.
    fn ratios(&self) -> Vec<f64> {
        let Some((ours, others)) = self.sides.split_first() else { return Vec::new() };
        let ratio = |other: &Side| match self.better {
            Better::Less => other.median() / ours.median(),
            Better::More => ours.median() / other.median(),
        };
        others.iter().map(ratio).map(|ratio| if ratio.is_finite() { ratio } else { 0.0 }).collect()
    }

    /// What is not as it was asked, if that is so.
    pub(super) fn broken(&self) -> Option<String> {
        let (found, kept) = match self.asked? {
            Asked::Times(least) => {
                let ratio = self.ratios().first().copied().unwrap_or(0.0);
                (format!("{ratio:.2} times as good, asked {least}"), ratio >= least)
            }
            Asked::AtMost(most) => {
                let ours = self.sides.first().map_or(0.0, Side::median);
                (format!("{ours:.1} {}, asked {most} at most", self.unit), ours > 0.0 && ours <= most)
            }
        };
        (!kept).then(|| format!("{}: {found}", self.what))
    }

    pub(super) fn text(&self) -> String {
        let quiet = if self.foreign > QUIET { "  (not quiet)" } else { "" };
        let mut text = format!("  {} ({}){quiet}\n", self.what, self.unit);
        let ratios = self.ratios();
        for (index, side) in self.sides.iter().enumerate() {
            let (low, high) = range(&side.samples);
            let _ = write!(text, "    {:<28}{:>9.2}  [{low:.2}-{high:.2}]", side.name, side.median());
            if let Some(ratio) = index.checked_sub(1).and_then(|other| ratios.get(other)) {
                let _ = write!(text, "  {ratio:.2} times");
            }
            match self.asked {
                Some(Asked::Times(least)) if index == 1 => drop(write!(text, ", asked {least}")),
                Some(Asked::AtMost(most)) if index == 0 => drop(write!(text, "  asked {most} at most")),
                _ => {}
            }
            text.push('\n');
        }
        if let Value::Object(more) = &self.more {
            for (key, value) in more {
                let value = value.as_f64().map_or_else(|| value.to_string(), |v| format!("{v:.2}"));
                let _ = writeln!(text, "    {key}: {value}");
            }
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        let side = |side: &Side| {
            let (low, high) = range(&side.samples);
            json!({
                "name": side.name, "median": side.median(), "lowest": low, "highest": high, "samples": side.samples,
            })
        };
        let asked = match self.asked {
            None => Value::Null,
            Some(Asked::Times(least)) => json!({"times_at_least": least}),
            Some(Asked::AtMost(most)) => json!({"at_most": most}),
        };
        json!({
            "what": self.what, "unit": self.unit, "sides": self.sides.iter().map(side).collect::<Vec<_>>(),
            "times": self.ratios(), "asked": asked, "kept": self.broken().is_none(),
            "foreign_share": self.foreign, "more": self.more,
        })
    }
}

/// The least and the most; zeros of none.
fn range(samples: &[f64]) -> (f64, f64) {
    let low = samples.iter().copied().fold(f64::INFINITY, f64::min);
    (if low.is_finite() { low } else { 0.0 }, samples.iter().copied().fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(better: Better, asked: Asked) -> Row {
        let sides = [("ours", vec![10.0, 30.0, 20.0]), ("peer", vec![50.0]), ("none", vec![])];
        let sides = sides.map(|(name, samples)| Side { name: name.into(), samples });
        let (sides, what, more) = (sides.into(), "speed".into(), json!({"key": 1.5}));
        Row { what, unit: "ms", better, sides, asked: Some(asked), foreign: 0.0, more }
    }

    #[test]
    fn medians_are_compared() {
        let less = row(Better::Less, Asked::Times(2.5));
        assert_eq!(less.ratios(), [2.5, 0.0]);
        assert_eq!(less.broken(), None);
        assert!(less.text().contains("2.50 times, asked 2.5\n") && less.text().contains("key: 1.50"));
        let more = row(Better::More, Asked::Times(0.5));
        assert_eq!(more.ratios(), [0.4, 0.0]);
        assert_eq!(more.broken().unwrap(), "speed: 0.40 times as good, asked 0.5");
        assert_eq!(more.json()["kept"], false);
        assert_eq!(row(Better::Less, Asked::AtMost(20.0)).broken(), None);
        assert!(row(Better::Less, Asked::AtMost(19.0)).broken().is_some());
    }

    #[test]
    fn what_was_not_measured_is_not_kept() {
        let mut row = row(Better::Less, Asked::AtMost(20.0));
        row.sides.clear();
        assert!(row.broken().is_some());
        row.asked = Some(Asked::Times(1.0));
        assert!(row.broken().is_some());
    }
}
