//! Lines that are commands.

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'l> {
    Command(Command),
    /// It looks like a command and is none; the word.
    Unknown(&'l str),
    /// It is for the model.
    Text(&'l str),
}

impl<'l> Line<'l> {
    pub(super) fn parse(line: &'l str) -> Self {
        let text = line.trim();
        if let Some(command) = Command::parse(text) {
            return Self::Command(command);
        }
        // A path or a comment is no command.
        let is_word = |word: &str| word.len() > 1 && word[1..].bytes().all(|byte| byte.is_ascii_alphabetic());
        let first = text.split_whitespace().next().unwrap_or_default();
        match first.strip_prefix('/') {
            Some(word) if word.starts_with('/') && is_word(word) => Self::Text(&line.trim_start()[1..]),
            Some(_) if is_word(first) => Self::Unknown(first),
            _ => Self::Text(line),
        }
    }
}

/// What a line may command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Reset,
    Undo,
    Retry,
    Stats,
    Help,
    Quit,
}

impl Command {
    pub(super) const LIST: &'static str = "there are /reset /undo /retry /stats /help /quit";

    pub(super) const HELP: &'static str = "  /reset   forget the conversation and begin with a fresh state
  /undo    take back the last message and its answer
  /retry   generate the last answer anew
  /stats   tokens reused and computed, times, position in the context
  /quit    end (so does Ctrl-D)
  Ctrl-C   stop an answer; what was said so far stays
  //word   say /word to the model: one slash less";

    fn parse(line: &str) -> Option<Self> {
        Some(match line {
            "/reset" => Self::Reset,
            "/undo" => Self::Undo,
            "/retry" => Self::Retry,
            "/stats" => Self::Stats,
            "/help" | "/?" => Self::Help,
            "/quit" | "/exit" | "/bye" => Self::Quit,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() {
        assert_eq!(Line::parse(" /reset "), Line::Command(Command::Reset));
        for (line, word) in [("/rest", "/rest"), ("/undo it", "/undo"), ("/Nothing like it", "/Nothing")] {
            assert_eq!(Line::parse(line), Line::Unknown(word), "{line}");
        }
        for text in ["", "/", "//", "Hello /reset", "/etc/passwd is what?", "// a comment", "/1", "///x", "/ü"] {
            assert_eq!(Line::parse(text), Line::Text(text), "{text}");
        }
        assert_eq!(Line::parse("//reset now"), Line::Text("/reset now"));
    }
}
