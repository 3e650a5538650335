//! What the process under examination tells: one object of JSON a line.

use serde::{Deserialize, Serialize};

/// A step of the examination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// The package is opened.
    Load,
    /// A state is made, and must be zero.
    State,
    /// A prompt is read.
    Prefill,
    /// Tokens are generated one by one.
    Decode,
    /// The logits are compared with those of a runtime that is trusted.
    Compare,
    /// A few tokens are compared with what the program means operation by operation.
    Plain,
    /// The same is done again, and must give the same bits.
    Again,
    /// The end of the context is reached, and what lies beyond is asked for.
    End,
    /// Many predictions are made, with an eye on the memory.
    Soak,
    /// Everything is put away.
    Done,
}

impl Step {
    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Step::Load => "load",
            Step::State => "state",
            Step::Prefill => "prefill",
            Step::Decode => "decode",
            Step::Compare => "compare",
            Step::Plain => "interpreter",
            Step::Again => "again",
            Step::End => "end of context",
            Step::Soak => "soak",
            Step::Done => "done",
        }
    }
}

/// How well a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// As it should.
    Ok,
    /// Something is odd.
    Warning,
    /// Something is wrong.
    Fail,
}

/// What a step found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The step.
    pub step: Step,
    /// How well it went.
    pub grade: Grade,
    /// One line for people.
    pub text: String,
    /// Seconds that the step took.
    pub seconds: f64,
    /// Its numbers, by name.
    #[serde(default)]
    pub numbers: std::collections::BTreeMap<String, f64>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// A step is about to be taken.
    Begin {
        /// Which.
        step: Step,
    },
    /// A step is taken.
    Found(Finding),
    /// All steps are taken.
    Done,
}

impl Event {
    /// An event of a line, if it is one.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    /// The event as a line, without its end.
    #[must_use]
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("names and numbers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_lines() {
        let finding = Finding {
            step: Step::End,
            grade: Grade::Warning,
            text: "two\nlines".into(),
            seconds: 0.5,
            numbers: [("bytes".to_owned(), 3.0)].into(),
        };
        for event in [Event::Begin { step: Step::Soak }, Event::Found(finding), Event::Done] {
            let line = event.line();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(Event::parse(&line), Some(event));
        }
        assert_eq!(Event::parse("ANE is warming up"), None);
    }
}
