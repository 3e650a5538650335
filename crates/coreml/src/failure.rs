//! What Core ML says when something fails.

use std::fmt;

use serde::Serialize;

use crate::dictionary::{self, Entry};

/// An error as Core ML gave it: Objective-C's `NSError`, with those under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Whose codes these are, such as `com.apple.CoreML`.
    pub domain: String,
    /// The code; 0 where the domain has no better one.
    pub code: i64,
    /// The message.
    pub message: String,
    /// The error that caused it, if it names one.
    pub cause: Option<Box<Failure>>,
}

/// Core ML's own domain.
pub(crate) const COREML_DOMAIN: &str = "com.apple.CoreML";

/// Core ML's codes, from `MLModelError.h`, with what they say.
const CODES: [(i64, &str); 7] = [
    (0, "generic"),
    (1, "feature type"),
    (3, "input or output"),
    (4, "custom layer"),
    (5, "custom model"),
    (6, "update"),
    (7, "parameters"),
];

/// More errors under one another are not followed.
pub(crate) const MAX_DEPTH: usize = 8;

impl Failure {
    /// A failure with no other under it.
    #[must_use]
    pub fn new(domain: impl Into<String>, code: i64, message: impl Into<String>) -> Self {
        Self { domain: domain.into(), code, message: message.into(), cause: None }
    }

    /// What kind of error the code is, where it is one of Core ML's own.
    #[must_use]
    pub fn kind(&self) -> Option<&'static str> {
        let own = self.domain == COREML_DOMAIN;
        CODES.iter().find(|(code, _)| own && *code == self.code).map(|(_, kind)| *kind)
    }

    /// The whole text: message, domain and code, and the same of every error under it. What to search the dictionary for.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{} ({} code {})", self.message.trim(), self.domain, self.code);
        let mut next = self.cause.as_deref();
        for _ in 0..MAX_DEPTH {
            let Some(cause) = next else { break };
            text += &format!("; caused by: {} ({} code {})", cause.message.trim(), cause.domain, cause.code);
            next = cause.cause.as_deref();
        }
        text
    }

    /// What the dictionary knows of it, the most telling first.
    #[must_use]
    pub fn explain(&self) -> Vec<&'static Entry> {
        let domain_and_code = format!("{} code={}", self.domain, self.code);
        dictionary::explain(&format!("{} {domain_and_code}", self.text()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())?;
        if let Some(entry) = self.explain().first() {
            write!(f, ". {} {} (`anemone explain {}`)", entry.cause, entry.remedies[0], entry.name)?;
        } else {
            write!(f, ". {}", dictionary::GENERAL[0])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_core_ml_said_and_what_is_known() {
        let message =
            "Failed to build the model execution plan using a model architecture file 'm.mil' with error code: -14.";
        let failure = Failure::new(COREML_DOMAIN, 0, message);
        let text = failure.to_string();
        assert!(text.starts_with(message) && text.contains("com.apple.CoreML code 0"), "{text}");
        assert!(text.contains("anemone explain minus-14"), "{text}");
        assert_eq!(failure.kind(), Some("generic"));
    }

    #[test]
    fn the_error_below_is_what_tells() {
        let below = Failure::new("com.apple.appleneuralengine", 8, "Failed with status=0x1d : statusType=0x9");
        let above = Failure { cause: Some(Box::new(below)), ..Failure::new(COREML_DOMAIN, 0, "Unable to compute.") };
        assert_eq!(above.explain().first().map(|e| e.name), Some("ane-request"));
        assert!(above.text().contains("caused by: Failed with status=0x1d"));
    }

    #[test]
    fn codes_alone_are_found_by_domain() {
        let failure = Failure::new("NSCocoaErrorDomain", 4097, "");
        assert_eq!(failure.explain().first().map(|e| e.name), Some("helper-application"));
        assert_eq!(Failure::new("NSCocoaErrorDomain", 3, "").kind(), None);
    }

    #[test]
    fn an_unknown_failure_still_helps() {
        let text = Failure::new("com.example", 77, "No.").to_string();
        assert!(text.contains("No. (com.example code 77)") && text.contains("cpu-only"), "{text}");
    }

    #[test]
    fn chains_end() {
        let mut failure = Failure::new("d", 0, "m");
        for _ in 0..100 {
            failure = Failure { cause: Some(Box::new(failure)), ..Failure::new("d", 0, "m") };
        }
        assert_eq!(failure.text().matches("caused by").count(), MAX_DEPTH);
    }
}
