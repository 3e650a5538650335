//! Changes to a protobuf message that keep it one: a field deep inside is changed and all lengths around it made right.

use super::Random;

/// Fields in fields are looked for down to this depth.
const DEPTH: usize = 24;

/// Changes one field of the message in `bytes` (its length in four bytes first).
pub(super) fn change(bytes: &mut Vec<u8>, random: &mut Random) {
    let head = bytes.first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize);
    let fields = bytes.get(4..4 + head).and_then(Field::list);
    // An earlier change may have left no message.
    let Some(fields) = fields.filter(|fields| !fields.is_empty()) else { return super::change(bytes, random, &[]) };
    let changed = encode(&change_list(fields, random, DEPTH));
    replace(bytes, &changed);
}

/// Puts another message in the place of the present one.
pub(super) fn replace(bytes: &mut Vec<u8>, message: &[u8]) {
    let head = bytes.first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize);
    let end = (4 + head).min(bytes.len());
    let rest = bytes.split_off(end);
    bytes.clear();
    bytes.extend_from_slice(&(message.len() as u32).to_le_bytes());
    bytes.extend_from_slice(message);
    bytes.extend_from_slice(&rest);
}

#[derive(Clone, Debug, PartialEq)]
struct Field {
    number: u64,
    value: Value,
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(Vec<u8>),
    Fixed32([u8; 4]),
}

impl Field {
    /// The fields of a message; `None` if these bytes are none.
    fn list(mut bytes: &[u8]) -> Option<Vec<Field>> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes)?;
            let value = match key & 7 {
                0 => Value::Varint(varint(&mut bytes)?),
                1 => Value::Fixed64(take(&mut bytes, 8)?.try_into().ok()?),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)?).ok()?;
                    Value::Bytes(take(&mut bytes, length)?.to_vec())
                }
                5 => Value::Fixed32(take(&mut bytes, 4)?.try_into().ok()?),
                _ => return None,
            };
            let number = key >> 3;
            if number == 0 {
                return None;
            }
            fields.push(Field { number, value });
        }
        Some(fields)
    }
}

fn change_list(mut fields: Vec<Field>, random: &mut Random, depth: usize) -> Vec<Field> {
    if fields.is_empty() {
        return fields;
    }
    let at = random.below(fields.len());
    // Most changes happen further inside.
    if depth > 0
        && !random.once_in(12)
        && let Value::Bytes(bytes) = &fields[at].value
        && let Some(inner) = Field::list(bytes)
        && !inner.is_empty()
    {
        fields[at].value = Value::Bytes(encode(&change_list(inner, random, depth - 1)));
        return fields;
    }
    match random.below(9) {
        0 => drop(fields.remove(at)),
        1 => fields.insert(at, fields[at].clone()),
        2 => {
            let to = random.below(fields.len());
            fields.swap(at, to);
        }
        3 => fields[at].number = if random.once_in(4) { random.number() >> 3 } else { 1 + random.draw() % 40 },
        4 => {
            // The value of another field: a name used twice, a type in the wrong place.
            let from = random.below(fields.len());
            fields[at].value = fields[from].value.clone();
        }
        _ => change_value(&mut fields[at].value, random),
    }
    fields
}

fn change_value(value: &mut Value, random: &mut Random) {
    match value {
        Value::Varint(number) => *number = random.number(),
        Value::Fixed64(bytes) => *bytes = random.number().to_le_bytes(),
        Value::Fixed32(bytes) => *bytes = (random.number() as u32).to_le_bytes(),
        Value::Bytes(bytes) => match random.below(4) {
            0 => bytes.clear(),
            1 => *bytes = b"main".to_vec(),
            2 => bytes.extend_from_within(..bytes.len().min(64)),
            _ => super::change(bytes, random, &[]),
        },
    }
}

fn encode(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        let kind = match field.value {
            Value::Varint(_) => 0,
            Value::Fixed64(_) => 1,
            Value::Bytes(_) => 2,
            Value::Fixed32(_) => 5,
        };
        put(&mut out, (field.number << 3) | kind);
        match &field.value {
            Value::Varint(number) => put(&mut out, *number),
            Value::Fixed64(bytes) => out.extend_from_slice(bytes),
            Value::Fixed32(bytes) => out.extend_from_slice(bytes),
            Value::Bytes(bytes) => {
                put(&mut out, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
        }
    }
    out
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were() {
        let fields = vec![
            Field { number: 1, value: Value::Varint(300) },
            Field { number: 502, value: Value::Bytes(vec![8, 1]) },
            Field { number: 3, value: Value::Fixed32([1, 2, 3, 4]) },
            Field { number: 4, value: Value::Fixed64([9; 8]) },
        ];
        assert_eq!(Field::list(&encode(&fields)), Some(fields));
        assert_eq!(Field::list(&[8]), None);
        assert_eq!(Field::list(&[10, 200]), None);
    }

    #[test]
    fn changes_keep_most_messages_readable() {
        let inner = encode(&[Field { number: 2, value: Value::Bytes(b"name".to_vec()) }]);
        let message = encode(&[
            Field { number: 1, value: Value::Varint(9) },
            Field { number: 502, value: Value::Bytes(encode(&[Field { number: 2, value: Value::Bytes(inner) }])) },
        ]);
        let mut seed = (message.len() as u32).to_le_bytes().to_vec();
        seed.extend_from_slice(&message);
        seed.extend_from_slice(b"weights");
        for round in 0..500 {
            let mut bytes = seed.clone();
            change(&mut bytes, &mut Random::new("p", round));
            let head = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
            assert!(Field::list(&bytes[4..4 + head]).is_some(), "{round}");
            assert!(bytes.ends_with(b"weights"), "{round}");
        }
    }
}
