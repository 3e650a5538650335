//! Constants: their content is as much as their type asks for.

use std::collections::BTreeMap;

use super::{Diagnostic, Problem};
use crate::constant::{Const, TensorConst};
use crate::place::Place;
use crate::types::{DType, Type};

pub(super) fn check_attributes(all: &BTreeMap<String, Const>, place: &Place, out: &mut Vec<Diagnostic>) {
    for (name, value) in all {
        check(value, &|| format!("attribute `{name}`"), place, out);
    }
}

/// Checks a constant; `what` names it.
pub(super) fn check(value: &Const, what: &dyn Fn() -> String, place: &Place, out: &mut Vec<Diagnostic>) {
    match value {
        Const::Tensor(t) => {
            if let Some((expected, found)) = wrong_size(t) {
                let problem = Problem::Constant { attribute: what(), ty: t.ty.to_string(), expected, found };
                out.push(Diagnostic { place: place.clone(), problem });
            }
        }
        Const::List(_, items) | Const::Tuple(items) => {
            items.iter().for_each(|item| check(item, what, place, out));
        }
        Const::Dictionary(_, _, entries) => entries.iter().for_each(|(k, v)| {
            check(k, what, place, out);
            check(v, what, place, out);
        }),
    }
}

fn wrong_size(t: &TensorConst) -> Option<(String, usize)> {
    let elements = t.ty.shape.iter().try_fold(1usize, |a, &b| a.checked_mul(b));
    let Some(elements) = elements else { return Some(("a shape of fewer elements".into(), t.bytes.len())) };
    if t.deferred.is_some() {
        return None;
    }
    if t.ty.dtype == DType::String {
        return (t.strings.len() != elements).then(|| (format!("{elements} strings"), t.strings.len()));
    }
    match t.ty.dtype.packed_bytes(elements) {
        Some(bytes) if bytes == t.bytes.len() => None,
        Some(bytes) => Some((format!("{bytes} bytes"), t.bytes.len())),
        None => Some(("a shape of fewer elements".into(), t.bytes.len())),
    }
}

/// Whether a declared type allows a constant of type `found`.
pub(super) fn declares(declared: &Type, found: &Type) -> bool {
    match (declared, found) {
        (Type::Tensor(d), Type::Tensor(f)) => f.to_static().is_some_and(|f| d.admits(&f)),
        (Type::List(d, n), Type::List(f, m)) => d == f && (n.is_none() || n == m),
        (d, f) => d == f,
    }
}
