//! Where turns come from: typed at a terminal, or lines of standard input.

use std::io::stdin;

use anemone_cli::lines::{self, Line};
use anyhow::{Context, Result};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::terminal;

/// The source of turns.
pub(super) enum Input {
    /// Typed, with editing and a history that ends with the conversation.
    Typed(Box<DefaultEditor>),
    /// Lines of a file or a pipe.
    Lines,
}

/// What comes next.
pub(super) enum Next {
    Line(String),
    /// A line that cannot be taken; why.
    Unusable(String),
    End,
}

impl Input {
    /// Typed, if somebody sits there.
    pub(super) fn open(as_json: bool) -> Result<Self> {
        if as_json || !terminal::is_conversation() {
            return Ok(Self::Lines);
        }
        let editor = DefaultEditor::new().context("cannot use the terminal")?;
        Ok(Self::Typed(Box::new(editor)))
    }

    pub(super) fn is_typed(&self) -> bool {
        matches!(self, Self::Typed(_))
    }

    pub(super) fn next(&mut self) -> Result<Next> {
        match self {
            Self::Lines => Ok(match lines::next(stdin().lock()).context("cannot read standard input")? {
                Some(Line::Text(line)) => Next::Line(line),
                Some(Line::Unusable(problem)) => Next::Unusable(problem),
                None => Next::End,
            }),
            Self::Typed(editor) => loop {
                match editor.readline("> ") {
                    Ok(line) => {
                        if !line.trim().is_empty() {
                            // A history that cannot grow is no reason to end.
                            let _ = editor.add_history_entry(line.as_str());
                        }
                        return Ok(Next::Line(line));
                    }
                    Err(ReadlineError::Interrupted) => terminal::note("(Ctrl-D or /quit ends)"),
                    Err(ReadlineError::Eof) => return Ok(Next::End),
                    Err(error) => return Err(error).context("cannot read from the terminal"),
                }
            },
        }
    }
}
