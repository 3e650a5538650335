//! Types and constants in text.

use std::fmt::{self, Write};

use super::elements;
use crate::constant::{Const, TensorConst};
use crate::types::{DType, Dim, TensorType, Type};

/// How scalars are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// `tensor<int32, []>(1)`.
    Long,
    /// `int32(1)`.
    Short,
}

type Sink<'a> = &'a mut dyn Write;

pub(super) fn ty(t: &Type, style: Style, f: Sink<'_>) -> fmt::Result {
    match t {
        Type::Tensor(t) => tensor_type(t, style, f),
        Type::State(t) => {
            f.write_str("state<")?;
            tensor_type(t, style, f)?;
            f.write_str(">")
        }
        Type::List(element, length) => {
            f.write_str("list<")?;
            ty(element, style, f)?;
            match length {
                Some(n) => write!(f, ", {n}>"),
                None => f.write_str(", ?>"),
            }
        }
        Type::Tuple(members) => {
            f.write_str("tuple<")?;
            list(members, f, |m, f| ty(m, style, f))?;
            f.write_str(">")
        }
        Type::Dictionary(key, value) => {
            f.write_str("dict<")?;
            ty(key, style, f)?;
            f.write_str(", ")?;
            ty(value, style, f)?;
            f.write_str(">")
        }
    }
}

fn tensor_type(t: &TensorType, style: Style, f: Sink<'_>) -> fmt::Result {
    match (&t.shape, style) {
        (Some(dims), Style::Short) if dims.is_empty() => f.write_str(t.dtype.name()),
        _ => write!(f, "{t}"),
    }
}

/// A constant with its type: `tensor<int32, [2]>([1, 2])`.
pub(super) fn typed(c: &Const, style: Style, f: Sink<'_>) -> fmt::Result {
    ty(&c.ty(), style, f)?;
    f.write_str("(")?;
    content(c, style, f)?;
    f.write_str(")")
}

/// A constant where `expected` is its type by context.
fn nested(c: &Const, expected: &Type, style: Style, f: Sink<'_>) -> fmt::Result {
    let told = match (c, expected) {
        // A literal tells the extents of axes that its type leaves open, if it has elements.
        (Const::Tensor(t), Type::Tensor(expected)) => {
            expected.admits(&t.ty) && (!is_open(expected) || expected.shape.is_some() && !t.ty.shape.contains(&0))
        }
        (Const::List(t, items), Type::List(expected, n)) => *t == **expected && n.is_none_or(|n| n == items.len()),
        _ => c.ty() == *expected,
    };
    // A blob's type must be told.
    let blob = c.tensor().is_some_and(|t| t.blob.is_some());
    if told && !(blob && c.ty() != *expected) { content(c, style, f) } else { typed(c, style, f) }
}

fn content(c: &Const, style: Style, f: Sink<'_>) -> fmt::Result {
    match c {
        Const::Tensor(t) => tensor(t, style, f),
        Const::List(element, items) => {
            f.write_str("[")?;
            list(items, f, |item, f| nested(item, element, style, f))?;
            f.write_str("]")
        }
        Const::Tuple(members) => {
            f.write_str("(")?;
            list(members, f, |m, f| content(m, style, f))?;
            f.write_str(")")
        }
        Const::Dictionary(key, value, entries) => {
            f.write_str("{")?;
            list(entries, f, |(k, v), f| {
                f.write_str("{")?;
                nested(k, key, style, f)?;
                f.write_str(", ")?;
                nested(v, value, style, f)?;
                f.write_str("}")
            })?;
            f.write_str("}")
        }
    }
}

fn tensor(t: &TensorConst, style: Style, f: Sink<'_>) -> fmt::Result {
    if t.deferred.is_some() {
        return f.write_str("BLOBFILE()");
    }
    if let Some(blob) = &t.blob {
        let scalar = |dtype: DType| match style {
            Style::Short => dtype.name().to_owned(),
            Style::Long => format!("tensor<{dtype}, []>"),
        };
        write!(f, "BLOBFILE(path = {}(", scalar(DType::String))?;
        quoted(&blob.file, f)?;
        return write!(f, "), offset = {}({}))", scalar(DType::U64), blob.offset);
    }
    // What can be told of a tensor without elements is in its type.
    let empty = t.ty.shape.contains(&0);
    if empty { f.write_str("[]") } else { axis(t, 0, &mut 0, f) }
}

/// The elements along axis `axis`, from element `at` on.
fn axis(t: &TensorConst, depth: usize, at: &mut usize, f: Sink<'_>) -> fmt::Result {
    let Some(&extent) = t.ty.shape.get(depth) else {
        let index = *at;
        *at += 1;
        return match t.ty.dtype {
            DType::String => quoted(t.strings.get(index).map_or("", String::as_str), f),
            _ => elements::write(t, index, f),
        };
    };
    f.write_str("[")?;
    for i in 0..extent {
        if i > 0 {
            f.write_str(", ")?;
        }
        axis(t, depth + 1, at, f)?;
    }
    f.write_str("]")
}

/// A string in quotes, its controls escaped.
pub(super) fn quoted(text: &str, f: Sink<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c.is_control() => write!(f, "\\u{{{:x}}}", c as u32)?,
            c => f.write_char(c)?,
        }
    }
    f.write_str("\"")
}

fn list<'a, T: 'a>(
    items: impl IntoIterator<Item = &'a T>,
    f: Sink<'_>,
    mut each: impl FnMut(&T, Sink<'_>) -> fmt::Result,
) -> fmt::Result {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        each(item, f)?;
    }
    Ok(())
}

/// Whether a type has an axis of unknown extent, which a literal of that type then tells.
pub(super) fn is_open(t: &TensorType) -> bool {
    t.shape.as_ref().is_none_or(|dims| dims.contains(&Dim::Unknown))
}
