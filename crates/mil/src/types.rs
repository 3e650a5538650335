//! Element types, shapes and the types of values.

use std::fmt;

use smallvec::SmallVec;

/// A concrete shape: one extent per axis, row-major. A scalar has no axes.
pub type Shape = SmallVec<[usize; 6]>;

/// The number of elements of a concrete shape.
#[must_use]
pub fn elements(shape: &[usize]) -> usize {
    // An axis without elements settles it, however large the others are.
    if shape.contains(&0) { 0 } else { shape.iter().product() }
}

/// An element type of MIL.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the variants are the types' own names")]
pub enum DType {
    Bool,
    String,
    F16,
    F32,
    F64,
    BF16,
    F8E4M3FN,
    F8E5M2,
    I4,
    I8,
    I16,
    I32,
    I64,
    U1,
    U2,
    U3,
    U4,
    U6,
    U8,
    U16,
    U32,
    U64,
}

/// How the runtime holds the elements of a type while it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Every floating type: computed and kept in `f32`, whatever the width of the declared type.
    Float,
    /// Every integer type: kept in `i32`.
    Int,
    /// Truth values.
    Bool,
    /// Text, which only parameters hold.
    String,
}

impl DType {
    /// All element types.
    pub const ALL: [DType; 22] = [
        DType::Bool,
        DType::String,
        DType::F16,
        DType::F32,
        DType::F64,
        DType::BF16,
        DType::F8E4M3FN,
        DType::F8E5M2,
        DType::I4,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U1,
        DType::U2,
        DType::U3,
        DType::U4,
        DType::U6,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
    ];

    /// The name in MIL text, such as `fp16` or `uint4`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::String => "string",
            DType::F16 => "fp16",
            DType::F32 => "fp32",
            DType::F64 => "fp64",
            DType::BF16 => "bf16",
            DType::F8E4M3FN => "fp8e4m3fn",
            DType::F8E5M2 => "fp8e5m2",
            DType::I4 => "int4",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::U1 => "uint1",
            DType::U2 => "uint2",
            DType::U3 => "uint3",
            DType::U4 => "uint4",
            DType::U6 => "uint6",
            DType::U8 => "uint8",
            DType::U16 => "uint16",
            DType::U32 => "uint32",
            DType::U64 => "uint64",
        }
    }

    /// The type named `name` in MIL text.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }

    /// Bits per element as stored in a package. Text has none.
    #[must_use]
    pub fn bits(self) -> usize {
        match self {
            DType::String => 0,
            DType::U1 => 1,
            DType::U2 => 2,
            DType::U3 => 3,
            DType::I4 | DType::U4 => 4,
            DType::U6 => 6,
            DType::Bool | DType::I8 | DType::U8 | DType::F8E4M3FN | DType::F8E5M2 => 8,
            DType::F16 | DType::BF16 | DType::I16 | DType::U16 => 16,
            DType::F32 | DType::I32 | DType::U32 => 32,
            DType::F64 | DType::I64 | DType::U64 => 64,
        }
    }

    /// Bytes that `elements` elements take, packed without gaps.
    #[must_use]
    pub fn packed_bytes(self, elements: usize) -> Option<usize> {
        Some(elements.checked_mul(self.bits())?.div_ceil(8))
    }

    /// How the runtime holds elements of this type.
    #[must_use]
    pub fn class(self) -> Class {
        match self {
            DType::Bool => Class::Bool,
            DType::String => Class::String,
            DType::F16 | DType::F32 | DType::F64 | DType::BF16 | DType::F8E4M3FN | DType::F8E5M2 => Class::Float,
            _ => Class::Int,
        }
    }

    /// Whether this is a floating type.
    #[must_use]
    pub fn is_float(self) -> bool {
        self.class() == Class::Float
    }

    /// Whether this is an integer type.
    #[must_use]
    pub fn is_int(self) -> bool {
        self.class() == Class::Int
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One axis of a declared type.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A fixed extent.
    Known(usize),
    /// An extent known only when the inputs are.
    Unknown,
}

/// A tensor type as a package declares it: axes may be unknown.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// One entry per axis; `None` where not even the rank is declared.
    pub shape: Option<Vec<Dim>>,
}

impl TensorType {
    /// A type whose axes are all known.
    #[must_use]
    pub fn fixed(dtype: DType, shape: &[usize]) -> Self {
        Self { dtype, shape: Some(shape.iter().map(|&n| Dim::Known(n)).collect()) }
    }

    /// The concrete type, if every axis is known.
    #[must_use]
    pub fn to_static(&self) -> Option<StaticType> {
        let dims = self.shape.as_ref()?;
        let shape = dims
            .iter()
            .map(|d| match d {
                Dim::Known(n) => Some(*n),
                Dim::Unknown => None,
            })
            .collect::<Option<Shape>>()?;
        Some(StaticType { dtype: self.dtype, shape })
    }

    /// Whether a concrete type is one that this declaration allows.
    #[must_use]
    pub fn admits(&self, found: &StaticType) -> bool {
        self.dtype == found.dtype
            && self.shape.as_ref().is_none_or(|dims| {
                dims.len() == found.shape.len()
                    && dims.iter().zip(&found.shape).all(|(d, n)| match d {
                        Dim::Known(k) => k == n,
                        Dim::Unknown => true,
                    })
            })
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Known(n) => write!(f, "{n}"),
            Dim::Unknown => f.write_str("?"),
        }
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tensor<{}, ", self.dtype)?;
        match &self.shape {
            None => f.write_str("[...]")?,
            Some(dims) => {
                f.write_str("[")?;
                for (i, d) in dims.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{d}")?;
                }
                f.write_str("]")?;
            }
        }
        f.write_str(">")
    }
}

/// A tensor type whose every axis is known.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct StaticType {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Shape,
}

impl StaticType {
    /// A concrete type.
    #[must_use]
    pub fn new(dtype: DType, shape: &[usize]) -> Self {
        Self { dtype, shape: Shape::from_slice(shape) }
    }

    /// The number of elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        elements(&self.shape)
    }
}

impl From<&StaticType> for TensorType {
    fn from(t: &StaticType) -> Self {
        TensorType::fixed(t.dtype, &t.shape)
    }
}

impl fmt::Display for StaticType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&TensorType::from(self), f)
    }
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A tensor; a scalar is a tensor of rank 0.
    Tensor(TensorType),
    /// A state that wraps a tensor: read by `read_state`, written by `write_state`.
    State(TensorType),
    /// A list of `length` elements (`None`: not known).
    List(Box<Type>, Option<usize>),
    /// A tuple.
    Tuple(Vec<Type>),
    /// A dictionary from keys to values.
    Dictionary(Box<Type>, Box<Type>),
}

impl Type {
    /// The tensor type, if the value is a tensor.
    #[must_use]
    pub fn tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// The wrapped tensor type, if the value is a state.
    #[must_use]
    pub fn state(&self) -> Option<&TensorType> {
        match self {
            Type::State(t) => Some(t),
            _ => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Tensor(t) => write!(f, "{t}"),
            Type::State(t) => write!(f, "state<{t}>"),
            Type::List(t, Some(n)) => write!(f, "list<{t}, {n}>"),
            Type::List(t, None) => write!(f, "list<{t}, ?>"),
            Type::Tuple(ts) => {
                f.write_str("tuple<")?;
                for (i, t) in ts.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{t}")?;
                }
                f.write_str(">")
            }
            Type::Dictionary(k, v) => write!(f, "dict<{k}, {v}>"),
        }
    }
}

macro_rules! debug_as_display {
    ($($t:ty),*) => { $(
        /// As in MIL text, so that messages which show a value read the same.
        impl fmt::Debug for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )* };
}
debug_as_display!(DType, Dim, TensorType, StaticType);

/// A set of operations, named as packages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "documented by `Opset::os`")]
pub enum Opset {
    CoreML3,
    CoreML4,
    CoreML5,
    CoreML6,
    CoreML7,
    CoreML8,
    CoreML9,
}

impl Opset {
    /// All operation sets, oldest first.
    pub const ALL: [Opset; 7] = [
        Opset::CoreML3,
        Opset::CoreML4,
        Opset::CoreML5,
        Opset::CoreML6,
        Opset::CoreML7,
        Opset::CoreML8,
        Opset::CoreML9,
    ];

    /// The name in a package, such as `CoreML8`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Opset::CoreML3 => "CoreML3",
            Opset::CoreML4 => "CoreML4",
            Opset::CoreML5 => "CoreML5",
            Opset::CoreML6 => "CoreML6",
            Opset::CoreML7 => "CoreML7",
            Opset::CoreML8 => "CoreML8",
            Opset::CoreML9 => "CoreML9",
        }
    }

    /// The set named `name` in a package.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|o| o.name() == name)
    }

    /// The iOS release that brought the set, such as `iOS 18`.
    #[must_use]
    pub fn os(self) -> &'static str {
        match self {
            Opset::CoreML3 => "iOS 13",
            Opset::CoreML4 => "iOS 14",
            Opset::CoreML5 => "iOS 15",
            Opset::CoreML6 => "iOS 16",
            Opset::CoreML7 => "iOS 17",
            Opset::CoreML8 => "iOS 18",
            Opset::CoreML9 => "iOS 26",
        }
    }
}

impl fmt::Display for Opset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
