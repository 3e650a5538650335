//! Lines that are commands.

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
  Ctrl-C   stop an answer; what was said so far stays";

    /// The command that a line is, if it is one.
    pub(super) fn parse(line: &str) -> Option<Self> {
        Some(match line.trim() {
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
