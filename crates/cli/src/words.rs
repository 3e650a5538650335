//! What went wrong, in the words of who typed: flags and commands, not fields and functions.

use std::path::Path;

use anemone::{Error, KeepError};
use anemone_convert::ConvertError;

use crate::causes;

/// The text of an error of the library.
#[must_use]
pub fn of(error: &Error) -> String {
    match error {
        Error::Setting { name, found, expected } => {
            format!("--{} is {found}; expected {expected}", name.replace('_', "-"))
        }
        Error::Conversation { operation, problem } => {
            let command = match *operation {
                "regenerate" => "/retry",
                "undo" => "/undo",
                "rewind" => "/rewind",
                "load" => "/load",
                other => other,
            };
            format!("{command}: {problem}")
        }
        // The names of sessions are what users give, not their folders; but what is wrong with a file is where it lies.
        Error::Kept { path, source } => {
            let name = session_name(path);
            match **source {
                KeepError::Name { .. } => source.to_string(),
                KeepError::Missing => format!("session {name}: {source}; `anemone sessions` lists what is kept"),
                KeepError::Exists => format!(
                    "session {name}: {source}; take another name, or remove it with `anemone sessions delete {name}`"
                ),
                KeepError::Locked { .. } => format!("session {name}: {source}"),
                _ => format!("session {name}: {}: {source}", path.display()),
            }
        }
        // What to do about it depends on the command.
        Error::ContextFull { needed, context, reserved } => format!(
            "the conversation with this message is {needed} tokens long and the context holds {context}, of which \
             {reserved} are kept free for the answer"
        ),
        Error::MessageTooLong { needed, context, reserved } => format!(
            "this message alone is {needed} tokens long, with the system message, and the context holds {context}, of \
             which {reserved} are kept free for the answer; shorten it, keep less free (`chat --margin`), or have the model \
             converted for a longer context with --context"
        ),
        other => other.to_string(),
    }
}

/// The name of a session, of whose folder or log this is the path.
fn session_name(path: &Path) -> String {
    let folder = if path.ends_with("log") { path.parent().unwrap_or(path) } else { path };
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The text of any error, with its causes.
#[must_use]
pub fn told(error: &anyhow::Error) -> String {
    if let Some(ConvertError::Options { option, problem }) = error.downcast_ref() {
        return format!("--{option} {problem}");
    }
    match error.downcast_ref() {
        Some(
            problem @ (Error::Setting { .. }
            | Error::Conversation { .. }
            | Error::Kept { .. }
            | Error::MessageTooLong { .. }),
        ) => of(problem),
        _ => causes::told(error),
    }
}

#[cfg(test)]
mod tests {
    use anemone::Generation;

    use super::*;

    #[test]
    fn settings_are_flags() {
        let wrong = [
            Generation { max_tokens: Some(0), ..Generation::default() },
            Generation { repetition_penalty: 0.0, ..Generation::default() },
        ];
        for (wrong, flag) in wrong.iter().zip(["--max-tokens is 0;", "--repetition-penalty is 0;"]) {
            let text = told(&wrong.check().unwrap_err().into());
            assert!(text.starts_with(flag) && text.contains("expected"), "{text}");
        }
        let option = ConvertError::Options { option: "context", problem: "1; expected 2".into() };
        assert_eq!(told(&option.into()), "--context 1; expected 2");
        let kept = |path: &str, source| of(&Error::Kept { path: path.into(), source: Box::new(source) });
        let name = KeepError::Name { name: "../evil".into(), problem: "names have no dots" };
        assert_eq!(kept("kept/sessions", name), "\"../evil\" cannot be the name of a session: names have no dots");
        let text = kept("kept/sessions/a", KeepError::Exists);
        assert!(text.starts_with("session a: there is") && text.contains("sessions delete a`"), "{text}");
        let retry = Error::Conversation { operation: "regenerate", problem: "there is no answer yet".into() };
        assert_eq!(of(&retry), "/retry: there is no answer yet");
    }
}
