//! One message of a conversation, as chat templates see it.

use serde::{Deserialize, Deserializer, Serialize};

/// A message: who speaks and what is said, plus any further fields that a template may look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, or another role that the template knows.
    pub role: String,
    /// The text; empty if it is missing or `null`, as in messages that only call tools.
    #[serde(default, deserialize_with = "text_or_null")]
    pub content: String,
    /// Other fields (`name`, `tool_calls`, …), handed to the template as they are.
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

fn text_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_fields_are_kept_and_content_may_be_missing() {
        for json in
            [r#"{"role":"assistant","content":null,"tool_calls":[1]}"#, r#"{"role":"assistant","tool_calls":[1]}"#]
        {
            let message: Message = serde_json::from_str(json).unwrap();
            assert_eq!(message.content, "");
            assert_eq!(
                serde_json::to_string(&message).unwrap(),
                r#"{"role":"assistant","content":"","tool_calls":[1]}"#
            );
        }
    }
}
