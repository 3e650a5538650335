//! The wire format of protobuf, one field at a time.

use super::ModelError;

/// One field of a message.
pub(super) struct Field<'a> {
    pub(super) number: u32,
    pub(super) payload: Payload<'a>,
    /// The whole field, key included.
    pub(super) raw: &'a [u8],
}

pub(super) enum Payload<'a> {
    Varint(u64),
    Fixed32,
    Fixed64,
    /// Bytes, a string, a message or packed numbers, and where in the model they begin.
    Bytes(&'a [u8], usize),
}

/// Iterates over the fields of one message; ends after the first error.
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    base: usize,
}

impl<'a> Fields<'a> {
    /// The fields of a message whose bytes begin `base` bytes into the model.
    pub(super) fn new(bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, at: 0, base }
    }

    fn varint(&mut self) -> Result<u64, ModelError> {
        let mut value = 0_u64;
        for shift in 0..10 {
            let byte = *self.bytes.get(self.at).ok_or(ModelError::Truncated { offset: self.base + self.at })?;
            self.at += 1;
            if shift == 9 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * shift);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ModelError::Malformed { offset: self.base + self.at, found: "a number of more than 64 bits".into() })
    }

    fn skip(&mut self, length: u64) -> Result<&'a [u8], ModelError> {
        let rest = &self.bytes[self.at..];
        let length = usize::try_from(length).ok().filter(|length| *length <= rest.len());
        let length = length.ok_or(ModelError::Truncated { offset: self.base + self.at })?;
        self.at += length;
        Ok(&rest[..length])
    }

    fn field(&mut self) -> Result<Field<'a>, ModelError> {
        let start = self.at;
        let offset = self.base + start;
        let malformed = |found: String| ModelError::Malformed { offset, found };
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|number| (1..1 << 29).contains(number));
        let number = number.ok_or_else(|| malformed(format!("field number {}", key >> 3)))?;
        let payload = match key & 7 {
            0 => Payload::Varint(self.varint()?),
            1 => self.skip(8).map(|_| Payload::Fixed64)?,
            2 => {
                let length = self.varint()?;
                let begin = self.base + self.at;
                Payload::Bytes(self.skip(length)?, begin)
            }
            5 => self.skip(4).map(|_| Payload::Fixed32)?,
            other => return Err(malformed(format!("wire type {other} in field {number}"))),
        };
        Ok(Field { number, payload, raw: &self.bytes[start..self.at] })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, ModelError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.bytes.len();
        }
        Some(field)
    }
}
