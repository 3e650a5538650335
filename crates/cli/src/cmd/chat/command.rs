//! Lines that are commands.

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'l> {
    Command(Command),
    /// It looks like a command and is none; the word.
    Unknown(&'l str),
    /// A command without what it needs; how it is used.
    Incomplete(&'static str),
    /// It is for the model.
    Text(&'l str),
}

impl<'l> Line<'l> {
    pub(super) fn parse(line: &'l str) -> Self {
        let text = line.trim();
        if let Some(command) = Command::parse(text) {
            return Self::Command(command);
        }
        if let Some(usage) = Command::usage(text) {
            return Self::Incomplete(usage);
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Reset,
    Undo,
    Retry,
    /// Back to the first so many messages.
    Rewind(usize),
    Save(String),
    Load(String),
    Fork(String),
    Context,
    Stats,
    Help,
    Quit,
}

impl Command {
    pub(super) const LIST: &'static str =
        "there are /reset /undo /retry /rewind /save /load /fork /context /stats /help /quit";

    pub(super) const HELP: &'static str = "  /reset       forget the conversation and begin with a fresh state
  /undo        take back the last message and its answer
  /retry       generate the last answer anew
  /rewind N    go back to the first N messages
  /save NAME   keep a copy of the conversation, which stays as it is
  /load NAME   go on from another conversation, here: what was loaded stays as it is
  /fork NAME   go on with a copy, kept as NAME; the conversation so far stays as it is
  /context     what takes up the context, drawn
  /stats       tokens reused and computed, times, how much of the context is taken
  /quit        end (so does Ctrl-D)
  Ctrl-C       stop an answer; what was said so far stays
  //word       say /word to the model: one slash less";

    fn parse(line: &str) -> Option<Self> {
        Some(match line {
            "/reset" => Self::Reset,
            "/undo" => Self::Undo,
            "/retry" => Self::Retry,
            "/context" => Self::Context,
            "/stats" => Self::Stats,
            "/help" | "/?" => Self::Help,
            "/quit" | "/exit" | "/bye" => Self::Quit,
            _ => {
                let (word, given) = line.split_once(char::is_whitespace)?;
                let given = given.trim().to_owned();
                match word {
                    "/rewind" => Self::Rewind(given.parse().ok()?),
                    "/save" => Self::Save(given),
                    "/load" => Self::Load(given),
                    "/fork" => Self::Fork(given),
                    _ => return None,
                }
            }
        })
    }

    /// How a command is used that is not complete.
    fn usage(line: &str) -> Option<&'static str> {
        Some(match line.split_whitespace().next()? {
            "/rewind" => "/rewind N goes back to the first N messages",
            "/save" => "/save NAME keeps a copy of the conversation",
            "/load" => "/load NAME goes on from another conversation",
            "/fork" => "/fork NAME goes on with a copy",
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
        assert_eq!(Line::parse("/save  my talk "), Line::Command(Command::Save("my talk".into())));
        assert_eq!(Line::parse("/rewind 2"), Line::Command(Command::Rewind(2)));
        for line in ["/save", "/load ", "/fork", "/rewind", "/rewind two", "/rewind -1"] {
            assert!(matches!(Line::parse(line), Line::Incomplete(_)), "{line}");
        }
        assert_eq!(Line::parse("//reset now"), Line::Text("/reset now"));
    }
}
