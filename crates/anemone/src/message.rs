//! One message of a conversation, as chat templates see it.

use serde::{Deserialize, Serialize};

/// A message: who speaks and what is said, plus any further fields that a template may look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, or another role that the template knows.
    pub role: String,
    /// The text.
    pub content: String,
    /// Other fields (`name`, `tool_calls`, …), handed to the template as they are.
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl Message {
    /// A message with a role and a text.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into(), extra: serde_json::Map::new() }
    }

    /// A message that instructs the model.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new("system", content)
    }

    /// A message of the person.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }

    /// A message of the model.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new("assistant", content)
    }
}
