//! A walk over the bytes of a model by the schema, before they are decoded.

use super::schema::{self, Message, Type};
use super::wire::{Fields, Payload};
use super::{ModelError, UnknownFields};
use crate::limits::{MAX_DECODED_BYTES, MAX_NESTING};

/// What the walk found.
pub(crate) struct Found {
    pub(super) unknown: UnknownFields,
    /// Generous estimate of the memory that the decoded model takes.
    pub(super) decoded_bytes: u64,
}

/// Walks a whole model. Errors: malformed or truncated bytes, too deep a nesting, too much memory.
pub(super) fn walk(model: &[u8]) -> Result<Found, ModelError> {
    let mut walk = Walk { unknown: UnknownFields::default(), cost: schema::MODEL.size as u64, path: Vec::new() };
    walk.message(model, 0, &schema::MODEL)?;
    Ok(Found { unknown: walk.unknown, decoded_bytes: walk.cost })
}

struct Walk {
    unknown: UnknownFields,
    cost: u64,
    path: Vec<(&'static str, Option<u32>)>,
}

/// Most fields that a message of the schema has; a test of the schema holds it.
pub(super) const MAX_FIELDS: usize = 9;

/// A node of std's `BTreeMap` has room for this many entries, and one entry already takes a node.
const MAP_NODE: usize = 11;

/// … and for its own links.
const NODE_LINKS: usize = 128;

/// What an element of `size` bytes costs in a growing `Vec`, by its index: the first takes room for four (or eight
/// bytes), and while it doubles both the old and the new buffer exist.
fn element(size: usize, index: u32) -> usize {
    if index == 0 { (4 * size).max(8) } else { 3 * size }
}

impl Walk {
    fn charge(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.cost = self.cost.saturating_add(bytes as u64);
        if self.cost > MAX_DECODED_BYTES { Err(ModelError::Expands { limit: MAX_DECODED_BYTES }) } else { Ok(()) }
    }

    fn message(&mut self, bytes: &[u8], base: usize, schema: &'static Message) -> Result<(), ModelError> {
        let mut seen = [0_u32; MAX_FIELDS];
        for field in Fields::new(bytes, base) {
            let field = field?;
            let Some((place, known)) = schema.field(field.number) else {
                if self.path.is_empty() {
                    self.unknown.add_top_level(field.raw);
                } else {
                    self.note_unknown(field.number);
                }
                continue;
            };
            let index = seen[place];
            seen[place] = index.saturating_add(1);
            let Payload::Bytes(payload, begin) = field.payload else {
                // One number, or one of many that are not packed.
                if let Type::Numbers(size) = known.2 {
                    self.charge(element(size, index))?;
                }
                continue;
            };
            match known.2 {
                Type::Number | Type::Bytes => {}
                // A packed number takes at least one byte on the wire, a packed float exactly its size.
                Type::Numbers(size) => self.charge(element(size, 0) + 3 * size * payload.len())?,
                Type::Text => self.charge(payload.len())?,
                Type::Texts => self.charge(element(size_of::<String>(), index) + payload.len())?,
                Type::One(inner) => self.enter(payload, begin, inner, (known.1, None))?,
                Type::Boxed(inner) => {
                    self.charge(inner.size)?;
                    self.enter(payload, begin, inner, (known.1, None))?;
                }
                Type::Many(inner) => {
                    self.charge(element(inner.size, index))?;
                    self.enter(payload, begin, inner, (known.1, Some(index)))?;
                }
                Type::Map(inner) => self.entry(payload, begin, Some(inner), (known.1, Some(index)))?,
                Type::TextMap => self.entry(payload, begin, None, (known.1, Some(index)))?,
            }
        }
        Ok(())
    }

    /// One entry of a map with string keys: a message with the key in field 1 and the value in field 2.
    fn entry(
        &mut self,
        bytes: &[u8],
        base: usize,
        value: Option<&'static Message>,
        step: (&'static str, Option<u32>),
    ) -> Result<(), ModelError> {
        let entry_size = size_of::<String>() + value.map_or(size_of::<String>(), |value| value.size);
        self.charge(if step.1 == Some(0) { MAP_NODE * entry_size + NODE_LINKS } else { 3 * entry_size })?;
        self.descend(step, base)?;
        for field in Fields::new(bytes, base) {
            let field = field?;
            match (field.number, field.payload, value) {
                (2, Payload::Bytes(payload, begin), Some(value)) => {
                    self.enter(payload, begin, value, ("value", None))?
                }
                (1, Payload::Bytes(text, _), _) | (2, Payload::Bytes(text, _), None) => self.charge(text.len())?,
                (1 | 2, _, _) => {}
                (number, ..) => self.note_unknown(number),
            }
        }
        self.path.pop();
        Ok(())
    }

    fn enter(
        &mut self,
        bytes: &[u8],
        base: usize,
        schema: &'static Message,
        step: (&'static str, Option<u32>),
    ) -> Result<(), ModelError> {
        self.descend(step, base)?;
        self.message(bytes, base, schema)?;
        self.path.pop();
        Ok(())
    }

    fn descend(&mut self, step: (&'static str, Option<u32>), offset: usize) -> Result<(), ModelError> {
        if self.path.len() == MAX_NESTING {
            return Err(ModelError::TooDeep { offset, limit: MAX_NESTING });
        }
        self.path.push(step);
        Ok(())
    }

    fn note_unknown(&mut self, number: u32) {
        let path = &self.path;
        self.unknown.add_nested(|| {
            let mut text = String::from("Model");
            for (name, index) in path {
                text.push('.');
                text.push_str(name);
                if let Some(index) = index {
                    text.push_str(&format!("[{index}]"));
                }
            }
            format!("{text} #{number}")
        });
    }
}
