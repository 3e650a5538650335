//! A kept conversation as a document.

use anemone::SavedSession;
use anyhow::Result;
use serde_json::json;

/// A heading for each message.
pub(super) fn markdown(saved: &SavedSession) -> String {
    let mut text = format!("# {}\n", saved.name);
    let interrupted = saved.unfinished_is_read.then(|| saved.messages.len() - 1);
    for (index, message) in saved.messages.iter().enumerate() {
        let role = match message.role.as_str() {
            "system" => "System",
            "user" => "User",
            "assistant" => "Assistant",
            other => other,
        };
        let mark = if interrupted == Some(index) { " (interrupted)" } else { "" };
        text += &format!("\n## {role}{mark}\n\n{}\n", message.content.trim_end());
    }
    if saved.unfinished > 0 && interrupted.is_none() {
        let count = saved.unfinished;
        text += &format!(
            "\n## Assistant (interrupted)\n\n[{count} tokens, whose text is known to the model's tokenizer]\n"
        );
    }
    text
}

/// One object; its `messages` have the form that chat APIs take. `interrupted` tells how many of the tokens, at their end, are
/// of an answer that was not finished.
pub(super) fn json(saved: &SavedSession) -> Result<String> {
    let mut object = json!({"name": saved.name, "messages": saved.messages, "tokens": saved.tokens});
    if saved.unfinished > 0 {
        object["interrupted"] = saved.unfinished.into();
    }
    Ok(serde_json::to_string_pretty(&object)? + "\n")
}
