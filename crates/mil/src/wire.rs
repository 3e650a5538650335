//! Names of element types on the two sides of the codec.

use anemone_package::BlobType;
use anemone_package::proto::{mil, spec};

use crate::types::DType;

const DTYPES: [(DType, mil::DataType); 22] = [
    (DType::Bool, mil::DataType::Bool),
    (DType::String, mil::DataType::String),
    (DType::F16, mil::DataType::Float16),
    (DType::F32, mil::DataType::Float32),
    (DType::F64, mil::DataType::Float64),
    (DType::BF16, mil::DataType::BFloat16),
    (DType::F8E4M3FN, mil::DataType::Float8E4M3FN),
    (DType::F8E5M2, mil::DataType::Float8E5M2),
    (DType::I4, mil::DataType::Int4),
    (DType::I8, mil::DataType::Int8),
    (DType::I16, mil::DataType::Int16),
    (DType::I32, mil::DataType::Int32),
    (DType::I64, mil::DataType::Int64),
    (DType::U1, mil::DataType::UInt1),
    (DType::U2, mil::DataType::UInt2),
    (DType::U3, mil::DataType::UInt3),
    (DType::U4, mil::DataType::UInt4),
    (DType::U6, mil::DataType::UInt6),
    (DType::U8, mil::DataType::UInt8),
    (DType::U16, mil::DataType::UInt16),
    (DType::U32, mil::DataType::UInt32),
    (DType::U64, mil::DataType::UInt64),
];

const ARRAYS: [(DType, spec::ArrayDataType); 5] = [
    (DType::F16, spec::ArrayDataType::Float16),
    (DType::F32, spec::ArrayDataType::Float32),
    (DType::F64, spec::ArrayDataType::Double),
    (DType::I8, spec::ArrayDataType::Int8),
    (DType::I32, spec::ArrayDataType::Int32),
];

/// Element types that weight files have.
pub(crate) const BLOBS: [(DType, BlobType); 17] = [
    (DType::F16, BlobType::Float16),
    (DType::F32, BlobType::Float32),
    (DType::BF16, BlobType::BFloat16),
    (DType::F8E4M3FN, BlobType::Float8E4M3FN),
    (DType::F8E5M2, BlobType::Float8E5M2),
    (DType::I4, BlobType::Int4),
    (DType::I8, BlobType::Int8),
    (DType::I16, BlobType::Int16),
    (DType::I32, BlobType::Int32),
    (DType::U1, BlobType::UInt1),
    (DType::U2, BlobType::UInt2),
    (DType::U3, BlobType::UInt3),
    (DType::U4, BlobType::UInt4),
    (DType::U6, BlobType::UInt6),
    (DType::U8, BlobType::UInt8),
    (DType::U16, BlobType::UInt16),
    (DType::U32, BlobType::UInt32),
];

/// The type of the weight file's blobs for an element type, if it has one.
pub(crate) fn blob_type(dtype: DType) -> Option<BlobType> {
    BLOBS.into_iter().find(|(d, _)| *d == dtype).map(|(_, blob)| blob)
}

/// The element type that a number of the schema means.
pub(crate) fn dtype(number: i32) -> Option<DType> {
    DTYPES.into_iter().find(|(_, wire)| *wire as i32 == number).map(|(dtype, _)| dtype)
}

/// The schema's number of an element type.
pub(crate) fn dtype_number(dtype: DType) -> i32 {
    DTYPES.into_iter().find(|(d, _)| *d == dtype).expect("every element type is in the table").1 as i32
}

/// The element type that a number of model descriptions means.
pub(crate) fn array_dtype(number: i32) -> Option<DType> {
    ARRAYS.into_iter().find(|(_, wire)| *wire as i32 == number).map(|(dtype, _)| dtype)
}

/// The number of model descriptions for an element type, for the five types that arrays at the border can have.
pub(crate) fn array_number(dtype: DType) -> Option<i32> {
    ARRAYS.into_iter().find(|(d, _)| *d == dtype).map(|(_, wire)| wire as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_type_has_a_number_of_its_own() {
        for d in DType::ALL {
            assert_eq!(dtype(dtype_number(d)), Some(d));
        }
        assert_eq!(dtype(mil::DataType::Unused as i32), None);
        for b in BlobType::ALL {
            let (d, _) = BLOBS.into_iter().find(|(_, other)| *other == b).expect("in the table");
            assert_eq!((d.name(), d.bits() as u64), (b.to_string().as_str(), b.bits()));
        }
    }
}
