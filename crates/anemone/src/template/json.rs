//! `tojson` as chat templates expect it: Python's `json.dumps` without HTML escaping.

use std::fmt::Write as _;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

/// Deepest nesting that is written.
const DEPTH: usize = 64;
/// Widest indentation that is written, in spaces.
const INDENT: usize = 64;

struct Style {
    ensure_ascii: bool,
    indent: Option<usize>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
}

/// The filter: `value | tojson(ensure_ascii=false, indent=none, separators=none, sort_keys=false)`.
pub(super) fn tojson(
    state: &State<'_, '_>,
    value: &Value,
    ensure_ascii: Option<bool>,
    indent: Option<Value>,
    options: Kwargs,
) -> Result<String, Error> {
    let ensure_ascii = ensure_ascii.or(options.get("ensure_ascii")?).unwrap_or(false);
    let indent = match indent.or(options.get("indent")?) {
        Some(indent) if !indent.is_none() => Some(usize::try_from(indent)?.min(INDENT)),
        _ => None,
    };
    let separators: Option<Value> = options.get("separators")?;
    let sort_keys = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    options.assert_all_used()?;
    let mut style = Style {
        ensure_ascii,
        indent,
        item_separator: if indent.is_some() { "," } else { ", " }.into(),
        key_separator: ": ".into(),
        sort_keys,
    };
    if let Some(separators) = separators.filter(|given| !given.is_none()) {
        style.item_separator = separators.get_item_by_index(0)?.to_string();
        style.key_separator = separators.get_item_by_index(1)?.to_string();
    }
    let mut out = String::new();
    write(&mut out, state, value, &style, 0)?;
    Ok(out)
}

fn write(out: &mut String, state: &State<'_, '_>, value: &Value, style: &Style, depth: usize) -> Result<(), Error> {
    if depth > DEPTH {
        return Err(refused(format!("nested deeper than {DEPTH}")));
    }
    let before = out.len();
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number if value.is_integer() => write!(out, "{value}").expect("a String takes all writes"),
        ValueKind::Number => out.push_str(&float(f64::try_from(value.clone())?)),
        ValueKind::String => string(out, value.as_str().unwrap_or_default(), style.ensure_ascii),
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            let mut any = false;
            for (index, item) in value.try_iter()?.enumerate() {
                any = true;
                separate(out, style, index, depth);
                write(out, state, &item, style, depth + 1)?;
            }
            close(out, style, any, depth, ']');
        }
        ValueKind::Map => {
            out.push('{');
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if style.sort_keys {
                keys.sort();
            }
            for (index, key) in keys.iter().enumerate() {
                separate(out, style, index, depth);
                string(out, &key_text(key)?, style.ensure_ascii);
                out.push_str(&style.key_separator);
                write(out, state, &value.get_item(key)?, style, depth + 1)?;
            }
            close(out, style, !keys.is_empty(), depth, '}');
        }
        other => return Err(refused(format!("{other} is not a JSON value"))),
    }
    state.consume_fuel(1 + ((out.len() - before) / 64) as u64)
}

fn refused(problem: String) -> Error {
    Error::new(ErrorKind::BadSerialization, format!("tojson: {problem}"))
}

fn separate(out: &mut String, style: &Style, index: usize, depth: usize) {
    if index > 0 {
        out.push_str(&style.item_separator);
    }
    new_line(out, style, depth + 1);
}

fn close(out: &mut String, style: &Style, any: bool, depth: usize, mark: char) {
    if any {
        new_line(out, style, depth);
    }
    out.push(mark);
}

fn new_line(out: &mut String, style: &Style, depth: usize) {
    if let Some(indent) = style.indent {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent * depth));
    }
}

fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String | ValueKind::Number => Ok(key.to_string()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.into()),
        ValueKind::None => Ok("null".into()),
        other => Err(refused(format!("{other} cannot be a key"))),
    }
}

fn string(out: &mut String, text: &str, ensure_ascii: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || (ensure_ascii && (c as u32) >= 0x7f) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}").expect("a String takes all writes");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A float as Python writes it: shortest form, with an exponent outside of 1e-4 … 1e16.
fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    let text = format!("{value:?}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |positive| ('-', positive));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}
