//! A kept conversation as a document.

use anemone::SavedSession;
use anyhow::Result;
use serde_json::json;

/// A heading for each message.
pub(super) fn markdown(saved: &SavedSession) -> String {
    let mut text = format!("# {}\n", saved.name);
    for message in &saved.messages {
        let role = match message.role.as_str() {
            "system" => "System",
            "user" => "User",
            "assistant" => "Assistant",
            other => other,
        };
        text += &format!("\n## {role}\n\n{}\n", message.content.trim_end());
    }
    text
}

/// One object; its `messages` have the form that chat APIs take.
pub(super) fn json(saved: &SavedSession) -> Result<String> {
    let object = json!({"name": saved.name, "messages": saved.messages, "tokens": saved.tokens});
    Ok(serde_json::to_string_pretty(&object)? + "\n")
}
