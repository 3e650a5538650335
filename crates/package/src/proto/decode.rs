//! From bytes to a model.

use bytes::Bytes;
use prost::Message;

use super::UnknownFields;
use super::spec::{ML_PROGRAM, Model, kind_of_field};
use super::walk::{Found, walk};
use super::wire::{Fields, Payload};
use crate::limits::{MAX_MODEL_BYTES, SPECIFICATION_VERSIONS};

/// A decoded model, and what the messages here could not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodedModel {
    /// The model; an ML Program.
    pub model: Model,
    /// What is missing from it.
    pub unknown: UnknownFields,
    /// An upper estimate of the memory that `model` takes, in bytes.
    pub decoded_bytes: u64,
}

/// Why bytes are not a model that Anemone reads.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The bytes end within a field.
    #[error("truncated: a field at byte {offset} ends beyond its message; copy or download the file again")]
    Truncated {
        /// Where, from the start of the model.
        offset: usize,
    },
    /// The bytes are not protobuf.
    #[error("not a Core ML model: {found} at byte {offset}; copy or download the file again")]
    Malformed {
        /// Where, from the start of the model.
        offset: usize,
        /// What is there.
        found: String,
    },
    /// Messages are nested too deeply.
    #[error("messages are nested more than {limit} deep at byte {offset}")]
    TooDeep {
        /// Where, from the start of the model.
        offset: usize,
        /// The bound.
        limit: usize,
    },
    /// The model is too large.
    #[error("the model is {found} bytes, more than the {limit} that are read; its weights should be in a weight file")]
    TooLarge {
        /// Its size in bytes.
        found: u64,
        /// The bound.
        limit: u64,
    },
    /// The model would take too much memory.
    #[error("decoding the model would take more than {limit} bytes of memory")]
    Expands {
        /// The bound.
        limit: u64,
    },
    /// The fields are not of the schema's types.
    #[error("not a Core ML model: {0}")]
    Schema(#[from] prost::DecodeError),
    /// Another kind of model than an ML Program.
    #[error(
        "the model is a {kind} (specification version {specification_version}), not an ML Program; convert its source \
         again with `convert_to=\"mlprogram\"` (coremltools)"
    )]
    NotMlProgram {
        /// The schema's name of the kind, such as `neuralNetwork`.
        kind: &'static str,
        /// The specification version that the model states.
        specification_version: i64,
    },
    /// No known kind of model.
    #[error(
        "the model (specification version {specification_version}) has no content of a known kind; fields found: \
         {fields:?}"
    )]
    NoKind {
        /// The specification version that the model states.
        specification_version: i64,
        /// The first numbers of the fields of `Model` that are there.
        fields: Vec<u32>,
    },
    /// More than one kind of model at once.
    #[error("the model is both a {first} and a {second}")]
    TwoKinds {
        /// A kind.
        first: &'static str,
        /// Another.
        second: &'static str,
    },
    /// An ML Program of a version that is not read.
    #[error(
        "ML Program of specification version {found}, expected {} to {}; {}",
        SPECIFICATION_VERSIONS.start(),
        SPECIFICATION_VERSIONS.end(),
        if *.found > i64::from(*SPECIFICATION_VERSIONS.end()) {
            "it needs a newer Anemone"
        } else {
            "ML Programs begin with version 6 (iOS 15): the file is damaged"
        }
    )]
    SpecificationVersion {
        /// The version that the model states.
        found: i64,
    },
}

/// Decodes a model, which must be an ML Program of specification version 6 to 10.
///
/// The bytes are checked before anything is allocated: size, nesting, memory and what the schema here does not know.
/// Immediate byte values share `bytes` instead of copying them.
pub fn decode_model(bytes: &Bytes) -> Result<DecodedModel, ModelError> {
    let found = check_model(bytes)?;
    let model = Model::decode(bytes.clone())?;
    Ok(DecodedModel { model, unknown: found.unknown, decoded_bytes: found.decoded_bytes })
}

/// All of [`decode_model`]'s checks but that of the fields' types, without decoding.
pub(crate) fn check_model(bytes: &[u8]) -> Result<Found, ModelError> {
    if bytes.len() as u64 > MAX_MODEL_BYTES {
        return Err(ModelError::TooLarge { found: bytes.len() as u64, limit: MAX_MODEL_BYTES });
    }
    check_kind(bytes)?;
    walk(bytes)
}

/// Reads only the top level, so a large model of another kind is named without decoding it.
fn check_kind(bytes: &[u8]) -> Result<(), ModelError> {
    let mut specification_version = 0_i64;
    let mut kind: Option<(u32, &'static str)> = None;
    let mut fields = Vec::new();
    for field in Fields::new(bytes, 0) {
        let field = field?;
        if let (1, Payload::Varint(version)) = (field.number, &field.payload) {
            specification_version = version.cast_signed();
        }
        if fields.len() < 16 && !fields.contains(&field.number) {
            fields.push(field.number);
        }
        match (kind_of_field(field.number), kind) {
            (Some(second), Some((number, first))) if number != field.number => {
                return Err(ModelError::TwoKinds { first, second });
            }
            (Some(name), _) => kind = Some((field.number, name)),
            (None, _) => {}
        }
    }
    match kind {
        None => Err(ModelError::NoKind { specification_version, fields }),
        Some((ML_PROGRAM, _)) if supported(specification_version) => Ok(()),
        Some((ML_PROGRAM, _)) => Err(ModelError::SpecificationVersion { found: specification_version }),
        Some((_, kind)) => Err(ModelError::NotMlProgram { kind, specification_version }),
    }
}

fn supported(specification_version: i64) -> bool {
    i32::try_from(specification_version).is_ok_and(|version| SPECIFICATION_VERSIONS.contains(&version))
}
