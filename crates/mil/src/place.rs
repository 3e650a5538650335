//! Where in a program something is: what errors and diagnostics point at.

use std::fmt::{self, Write};

/// A place in a program, from the outside in.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The function; none for the model or the program as a whole.
    pub function: Option<String>,
    /// The operation, after those whose nested blocks hold it. Empty for the function itself.
    pub ops: Vec<OpPlace>,
    /// A part of it, such as ``attribute `val` `` or ``output port `logits` ``.
    pub part: Option<String>,
}

/// One operation of a block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpPlace {
    /// Which nested block of the enclosing operation; `None` for the function's own block.
    pub block: Option<usize>,
    /// Index in the block.
    pub index: usize,
    /// The operation's name in MIL.
    pub kind: String,
    /// The name of its first result; its label, if it has none.
    pub output: String,
}

impl Place {
    /// The model or program as a whole.
    #[must_use]
    pub fn whole() -> Self {
        Self::default()
    }

    /// A function as a whole.
    #[must_use]
    pub fn function(name: impl Into<String>) -> Self {
        Self { function: Some(name.into()), ..Self::default() }
    }

    /// An operation of this function's own block, or of nested block `block` of this operation.
    #[must_use]
    pub fn op(&self, block: Option<usize>, index: usize, kind: &str, output: &str) -> Self {
        let mut place = self.clone();
        place.part = None;
        place.ops.push(OpPlace { block, index, kind: kind.to_owned(), output: output.to_owned() });
        place
    }

    /// A part of this place.
    #[must_use]
    pub fn part(mut self, part: impl Into<String>) -> Self {
        self.part = Some(part.into());
        self
    }
}

/// Shows something with its control characters escaped: names come from files, and messages go to terminals, one a line.
pub(crate) struct OneLine<T>(pub(crate) T);

impl<T: fmt::Display> fmt::Display for OneLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Escape<'a, 'b>(&'a mut fmt::Formatter<'b>);
        impl fmt::Write for Escape<'_, '_> {
            fn write_str(&mut self, s: &str) -> fmt::Result {
                s.chars().try_for_each(|c| match c.is_control() {
                    true => write!(self.0, "{}", c.escape_default()),
                    false => self.0.write_char(c),
                })
            }
        }
        write!(Escape(f), "{}", self.0)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.function {
            Some(name) => write!(f, "function `{name}`")?,
            None => f.write_str("model")?,
        }
        for op in &self.ops {
            if let Some(block) = op.block {
                write!(f, ", block {block}")?;
            }
            write!(f, ", op {} `{}`", op.index, op.kind)?;
            if !op.output.is_empty() {
                write!(f, " (`{}`)", op.output)?;
            }
        }
        if let Some(part) = &self.part {
            write!(f, ", {part}")?;
        }
        Ok(())
    }
}
