//! Element types of Core ML's arrays.

use std::fmt;

use serde::Serialize;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    /// Half floats.
    F16,
    /// Single floats.
    F32,
    /// Double floats.
    F64,
    /// 32-bit integers.
    I32,
    /// 8-bit integers (macOS 26, iOS 26).
    I8,
}

/// Each with its name, its value in Apple's `MLMultiArrayDataType`, and its bytes.
const TABLE: [(ElementType, &str, isize, usize); 5] = [
    (ElementType::F16, "f16", 0x10000 | 16, 2),
    (ElementType::F32, "f32", 0x10000 | 32, 4),
    (ElementType::F64, "f64", 0x10000 | 64, 8),
    (ElementType::I32, "i32", 0x20000 | 32, 4),
    (ElementType::I8, "i8", 0x20000 | 8, 1),
];

impl ElementType {
    /// All of them.
    pub const ALL: [ElementType; 5] =
        [ElementType::F16, ElementType::F32, ElementType::F64, ElementType::I32, ElementType::I8];

    fn row(self) -> &'static (ElementType, &'static str, isize, usize) {
        TABLE.iter().find(|row| row.0 == self).expect("the table has every variant")
    }

    /// The name: `f16`, `f32`, `f64`, `i32`, `i8`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The value of Apple's `MLMultiArrayDataType`.
    #[must_use]
    pub fn raw(self) -> isize {
        self.row().2
    }

    /// The type of a value of `MLMultiArrayDataType`; `None` for one that is newer than this crate.
    #[must_use]
    pub fn from_raw(raw: isize) -> Option<Self> {
        TABLE.iter().find(|row| row.2 == raw).map(|row| row.0)
    }

    /// Bytes of one element.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.row().3
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Apple's header `MLMultiArray.h`.
    #[test]
    fn raw_values_are_apples() {
        let raw = ElementType::ALL.map(ElementType::raw);
        assert_eq!(raw, [65552, 65568, 65600, 131_104, 131_080]);
        assert!(ElementType::ALL.iter().all(|&t| ElementType::from_raw(t.raw()) == Some(t)));
        assert_eq!(ElementType::from_raw(0), None);
    }

    #[test]
    fn bytes_are_those_of_the_low_bits() {
        assert!(ElementType::ALL.iter().all(|t| t.bytes() * 8 == (t.raw() & 0xff) as usize));
    }
}
