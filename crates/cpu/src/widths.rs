//! A function for any number of tokens, from two of a package that differ in that number alone.
//!
//! A package often has one function for a single token and one for many, both written by the same code. Operation by
//! operation they are compared: where a declared extent or an integer constant differs, it lies on the straight line
//! through both, and at another width it has the value that the line says. So a call of ten tokens need not compute
//! sixty-four.
//!
//! The wide function may do more in one place: pick the last row, of which alone logits are wanted. [`Picked`] is what it
//! does there, and is asked whether it does that and nothing else.

mod compare;
mod picked;

use std::collections::BTreeMap;

use anemone_kernels::Isa;
use anemone_mil::types::{Dim, TensorType, Type};
use anemone_mil::{Const, Function, TensorConst, ValueId};

use compare::{Alike, compare};
use picked::Picked;

use crate::variant::Variant;

/// Tokens of which a call of more is no faster: where products run by tiles, weights are made ready for those once a call.
/// Elsewhere it is none that counts.
#[must_use]
pub fn worthwhile_width() -> Option<usize> {
    matches!(Isa::detect(), Isa::Amx(_)).then_some(128)
}

/// A function at any width of a range.
#[derive(Debug)]
pub struct Widths {
    /// The function at one width.
    template: Function,
    /// That width.
    width: usize,
    low: usize,
    high: usize,
    changes: Vec<Change>,
}

/// A number that follows the width: `base + slope · (width − that of the template)`.
#[derive(Clone, Debug, PartialEq)]
struct Change {
    place: Place,
    base: i64,
    slope: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// An extent of the declared type of a value.
    Extent { value: ValueId, axis: usize },
    /// An element of the constant that an operation gives.
    Element { op: usize, index: usize },
}

impl Change {
    /// The line through two points, if it has whole numbers in between.
    fn through(place: Place, (width, base): (usize, i64), (other_width, other): (usize, i64)) -> Option<Self> {
        let (run, rise) = (other_width as i64 - width as i64, other - base);
        (rise % run == 0).then_some(Self { place, base, slope: rise / run })
    }
}

impl Widths {
    /// The wide function at widths from 2 to its own, or to `most` if that is more: as it, with whatever it gives for the last
    /// token alone. None if the functions do not show what another width is.
    #[must_use]
    pub fn of_wide(narrow: (&Function, usize), wide: (&Function, usize), most: usize) -> Option<Self> {
        // There is none in between.
        if wide.1 <= 2 {
            return None;
        }
        let Alike { mut changes, extra, bound, .. } = compare(wide, narrow)?;
        let (template, width) = (wide.0.clone(), wide.1);
        let high = width.max(most);
        if let Some((result, _)) = bound {
            changes.extend(picked::constants(&template, &extra, &changes, width));
            let widths = Self { template, width, low: 2, high, changes };
            let picked = Picked::new(&widths.template, &extra, result, &widths.changes)?;
            let all = [2, 3, width.midpoint(2), width, high].iter().all(|&n| picked.is_last(&widths.at(n), n));
            return all.then_some(widths);
        }
        extra.is_empty().then_some(Self { template, width, low: 2, high, changes })
    }

    /// The narrow function at widths from 2 to that of the wide one: what it gives for its token, for each of them.
    #[must_use]
    pub fn of_narrow(narrow: (&Function, usize), wide: (&Function, usize)) -> Option<Self> {
        let Alike { changes, extra, after, .. } = compare(narrow, wide)?;
        let mut template = narrow.0.clone();
        // What the wide function has one row of here, this one has as many of as there are tokens: types say so.
        for &value in after.iter().filter(|_| extra.is_empty()) {
            if let Type::Tensor(TensorType { shape: Some(dims), .. }) = &mut template.values[value.index()].ty {
                dims.fill(Dim::Unknown);
            }
        }
        (wide.1 > 2 && extra.is_empty()).then_some(Self { template, width: narrow.1, low: 2, high: wide.1, changes })
    }

    /// The widths.
    #[must_use]
    pub fn range(&self) -> (usize, usize) {
        (self.low, self.high)
    }

    /// The same, of at most so many tokens.
    #[must_use]
    pub fn up_to(self, most: usize) -> Self {
        Self { high: self.high.min(most.max(self.low)), ..self }
    }

    /// The function at a width.
    ///
    /// # Panics
    /// If the width is outside the range.
    pub(crate) fn at(&self, width: usize) -> Variant<'_> {
        assert!((self.low..=self.high).contains(&width), "a width of {width}, of {} to {}", self.low, self.high);
        let function = &self.template;
        let mut variant = Variant::from(function);
        let mut constants: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
        for change in &self.changes {
            let value = change.base + change.slope * (width as i64 - self.width as i64);
            match change.place {
                Place::Extent { value: id, axis } => {
                    let ty = variant.types.entry(id).or_insert_with(|| function.value(id).ty.clone());
                    if let Type::Tensor(TensorType { shape: Some(dims), .. }) = ty {
                        dims[axis] = Dim::Known(usize::try_from(value).unwrap_or(0));
                    }
                }
                Place::Element { op, index } => {
                    let elements = constants.entry(op).or_insert_with(|| {
                        let c = function.body.ops[op].constant().and_then(Const::tensor);
                        c.map_or_else(Vec::new, |c| c.ints(0..c.ty.elements()).collect())
                    });
                    elements[index] = value;
                }
            }
        }
        for (op, elements) in constants {
            if let Some(Const::Tensor(TensorConst { ty, .. })) = function.body.ops[op].constant() {
                // Between two numbers that the type holds.
                variant.constants.insert(op, Const::ints(ty.dtype, &ty.shape, &elements));
            }
        }
        variant
    }
}

#[cfg(test)]
mod tests;
