//! An error with its causes, each said once.

use anyhow::Error;

/// The text of an error and of its causes. The errors of the libraries name their cause themselves and give it as their
/// source too; it is not repeated.
#[must_use]
pub fn told(error: &Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("m.gguf: cannot open: {source}")]
    struct Io {
        source: std::io::Error,
    }

    #[test]
    fn each_cause_is_told_once() {
        let io = || Io { source: std::io::Error::other("no such file") };
        assert_eq!(told(&io().into()), "m.gguf: cannot open: no such file");
        let outer = Err::<(), _>(io()).context("the model cannot be used").unwrap_err();
        assert_eq!(told(&outer), "the model cannot be used: m.gguf: cannot open: no such file");
        assert_eq!(told(&anyhow!("b").context("a")), "a: b");
    }
}
