//! The schema as data: which fields each message has.
//!
//! It lets the bytes of a model be checked before anything is decoded: what it would cost, and what the messages here
//! would drop. A test holds it to the messages field by field.

use super::{mil, spec};

/// One type of message.
pub(super) struct Message {
    pub(super) fields: &'static [Field],
    /// Size of the decoded message, without what it points to.
    pub(super) size: usize,
}

/// One field: number, the schema's name, type.
pub(super) struct Field(pub(super) u32, pub(super) &'static str, pub(super) Type);

/// The type of a field.
#[derive(Clone, Copy)]
pub(super) enum Type {
    /// One number.
    Number,
    /// Many numbers, of so many bytes each when decoded.
    Numbers(usize),
    /// One string.
    Text,
    /// Many strings.
    Texts,
    /// Bytes; they are shared with the file, not copied.
    Bytes,
    /// A message in place.
    One(&'static Message),
    /// A message in a box.
    Boxed(&'static Message),
    /// Many messages.
    Many(&'static Message),
    /// Messages by name.
    Map(&'static Message),
    /// Strings by name.
    TextMap,
}

use Type::{Boxed, Bytes, Many, Map, Number, Numbers, One, Text, TextMap, Texts};

macro_rules! messages {
    ($($name:ident = $of:ty { $($number:literal $field:ident $kind:expr),* })*) => {
        $(pub(super) static $name: Message = Message {
            fields: &[$(Field($number, stringify!($field), $kind)),*],
            size: size_of::<$of>(),
        };)*
        #[cfg(test)]
        pub(super) const ALL: &[(&str, &Message)] = &[$((stringify!($of), &$name)),*];
    };
}

messages! {
    MODEL = spec::Model {
        1 specificationVersion Number, 2 description One(&DESCRIPTION), 10 isUpdatable Number, 502 mlProgram One(&PROGRAM)
    }
    DESCRIPTION = spec::ModelDescription {
        1 input Many(&FEATURE), 10 output Many(&FEATURE), 11 predictedFeatureName Text,
        12 predictedProbabilitiesName Text, 13 state Many(&FEATURE), 20 functions Many(&FUNCTION_DESCRIPTION),
        21 defaultFunctionName Text, 50 trainingInput Many(&FEATURE), 100 metadata One(&METADATA)
    }
    FUNCTION_DESCRIPTION = spec::FunctionDescription {
        1 name Text, 2 input Many(&FEATURE), 3 output Many(&FEATURE), 4 predictedFeatureName Text,
        5 predictedProbabilitiesName Text, 6 state Many(&FEATURE)
    }
    METADATA = spec::Metadata {
        1 shortDescription Text, 2 versionString Text, 3 author Text, 4 license Text, 100 userDefined TextMap
    }
    FEATURE = spec::FeatureDescription { 1 name Text, 2 shortDescription Text, 3 type One(&FEATURE_TYPE) }
    FEATURE_TYPE = spec::FeatureType {
        1 int64Type One(&INT64), 2 doubleType One(&DOUBLE), 3 stringType One(&STRING), 4 imageType One(&IMAGE),
        5 multiArrayType One(&ARRAY), 6 dictionaryType One(&DICTIONARY_FEATURE), 7 sequenceType One(&SEQUENCE),
        8 stateType One(&STATE_FEATURE), 1000 isOptional Number
    }
    INT64 = spec::Int64FeatureType {}
    DOUBLE = spec::DoubleFeatureType {}
    STRING = spec::StringFeatureType {}
    IMAGE = spec::ImageFeatureType {
        1 width Number, 2 height Number, 3 colorSpace Number, 21 enumeratedSizes One(&IMAGE_SIZES),
        31 imageSizeRange One(&IMAGE_RANGE)
    }
    IMAGE_SIZES = spec::EnumeratedImageSizes { 1 sizes Many(&IMAGE_SIZE) }
    IMAGE_SIZE = spec::ImageSize { 1 width Number, 2 height Number }
    IMAGE_RANGE = spec::ImageSizeRange { 1 widthRange One(&SIZE_RANGE), 2 heightRange One(&SIZE_RANGE) }
    SIZE_RANGE = spec::SizeRange { 1 lowerBound Number, 2 upperBound Number }
    ARRAY = spec::ArrayFeatureType {
        1 shape Numbers(8), 2 dataType Number, 21 enumeratedShapes One(&SHAPES), 31 shapeRange One(&SHAPE_RANGE),
        41 intDefaultValue Number, 51 floatDefaultValue Number, 61 doubleDefaultValue Number
    }
    SHAPES = spec::EnumeratedShapes { 1 shapes Many(&SHAPE) }
    SHAPE = spec::Shape { 1 shape Numbers(8) }
    SHAPE_RANGE = spec::ShapeRange { 1 sizeRanges Many(&SIZE_RANGE) }
    DICTIONARY_FEATURE = spec::DictionaryFeatureType { 1 int64KeyType One(&INT64), 2 stringKeyType One(&STRING) }
    SEQUENCE = spec::SequenceFeatureType { 1 int64Type One(&INT64), 3 stringType One(&STRING), 101 sizeRange One(&SIZE_RANGE) }
    STATE_FEATURE = spec::StateFeatureType { 1 arrayType One(&ARRAY) }
    PROGRAM = mil::Program { 1 version Number, 2 functions Map(&FUNCTION), 3 docString Text, 4 attributes Map(&VALUE) }
    FUNCTION = mil::Function {
        1 inputs Many(&NAMED_TYPE), 2 opset Text, 3 block_specializations Map(&BLOCK), 4 attributes Map(&VALUE)
    }
    BLOCK = mil::Block {
        1 inputs Many(&NAMED_TYPE), 2 outputs Texts, 3 operations Many(&OPERATION), 4 attributes Map(&VALUE)
    }
    OPERATION = mil::Operation {
        1 type Text, 2 inputs Map(&ARGUMENT), 3 outputs Many(&NAMED_TYPE), 4 blocks Many(&BLOCK), 5 attributes Map(&VALUE)
    }
    ARGUMENT = mil::Argument { 1 arguments Many(&BINDING) }
    BINDING = mil::Binding { 1 name Text, 2 value One(&VALUE) }
    NAMED_TYPE = mil::NamedValueType { 1 name Text, 2 type One(&VALUE_TYPE) }
    VALUE_TYPE = mil::ValueType {
        1 tensorType One(&TENSOR_TYPE), 2 listType Boxed(&LIST_TYPE), 3 tupleType One(&TUPLE_TYPE),
        4 dictionaryType Boxed(&DICTIONARY_TYPE), 5 stateType Boxed(&STATE_TYPE)
    }
    TENSOR_TYPE = mil::TensorType {
        1 dataType Number, 2 rank Number, 3 dimensions Many(&DIMENSION), 4 attributes Map(&VALUE)
    }
    TUPLE_TYPE = mil::TupleType { 1 types Many(&VALUE_TYPE) }
    LIST_TYPE = mil::ListType { 1 type Boxed(&VALUE_TYPE), 2 length One(&DIMENSION) }
    DICTIONARY_TYPE = mil::DictionaryType { 1 keyType Boxed(&VALUE_TYPE), 2 valueType Boxed(&VALUE_TYPE) }
    STATE_TYPE = mil::StateType { 1 wrappedType Boxed(&VALUE_TYPE) }
    DIMENSION = mil::Dimension { 1 constant One(&CONSTANT), 2 unknown One(&UNKNOWN) }
    CONSTANT = mil::ConstantDimension { 1 size Number }
    UNKNOWN = mil::UnknownDimension { 1 variadic Number }
    VALUE = mil::Value {
        1 docString Text, 2 type One(&VALUE_TYPE), 3 immediateValue One(&IMMEDIATE), 5 blobFileValue One(&BLOB_FILE)
    }
    IMMEDIATE = mil::ImmediateValue {
        1 tensor One(&TENSOR), 2 tuple One(&TUPLE), 3 list One(&LIST), 4 dictionary One(&DICTIONARY)
    }
    BLOB_FILE = mil::BlobFileValue { 1 fileName Text, 2 offset Number }
    TENSOR = mil::TensorValue {
        1 floats One(&FLOATS), 2 ints One(&INTS), 3 bools One(&BOOLS), 4 strings One(&STRINGS), 5 longInts One(&LONG_INTS),
        6 doubles One(&DOUBLES), 7 bytes One(&BYTES)
    }
    FLOATS = mil::RepeatedFloats { 1 values Numbers(4) }
    INTS = mil::RepeatedInts { 1 values Numbers(4) }
    BOOLS = mil::RepeatedBools { 1 values Numbers(1) }
    STRINGS = mil::RepeatedStrings { 1 values Texts }
    LONG_INTS = mil::RepeatedLongInts { 1 values Numbers(8) }
    DOUBLES = mil::RepeatedDoubles { 1 values Numbers(8) }
    BYTES = mil::RepeatedBytes { 1 values Bytes }
    TUPLE = mil::TupleValue { 1 values Many(&VALUE) }
    LIST = mil::ListValue { 1 values Many(&VALUE) }
    DICTIONARY = mil::DictionaryValue { 1 values Many(&PAIR) }
    PAIR = mil::KeyValuePair { 1 key One(&VALUE), 2 value One(&VALUE) }
}

impl Message {
    /// The field of this number, and its place in the list.
    pub(super) fn field(&self, number: u32) -> Option<(usize, &'static Field)> {
        self.fields.iter().enumerate().find(|(_, field)| field.0 == number)
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use prost::encoding::{WireType, encode_key, encode_varint};

    use super::*;
    use crate::proto::spec::Model;

    fn delimited(number: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_key(number, WireType::LengthDelimited, &mut bytes);
        encode_varint(payload.len() as u64, &mut bytes);
        bytes.extend_from_slice(payload);
        bytes
    }

    fn number(number: u32, wire: WireType, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_key(number, wire, &mut bytes);
        bytes.extend_from_slice(payload);
        bytes
    }

    /// Whether our messages keep anything of `with` that is not in `without`.
    fn kept(with: &[u8], without: &[u8]) -> bool {
        let encoded = |bytes: &[u8]| Model::decode(bytes).map(|model| model.encode_to_vec());
        encoded(with).is_ok_and(|with| with != encoded(without).expect("messages without content"))
    }

    /// Visits every message of the schema once, by the shortest way, with a function that wraps its bytes into a model.
    fn for_each_message(mut visit: impl FnMut(&'static Message, &dyn Fn(&[u8]) -> Vec<u8>)) -> usize {
        let mut queue: std::collections::VecDeque<(&'static Message, Vec<(u32, bool)>)> = [(&MODEL, vec![])].into();
        let mut seen: Vec<*const Message> = vec![];
        while let Some((message, way)) = queue.pop_front() {
            if seen.contains(&std::ptr::from_ref(message)) {
                continue;
            }
            seen.push(std::ptr::from_ref(message));
            visit(message, &|bytes| {
                way.iter().rev().fold(bytes.to_vec(), |inner, &(number, map)| {
                    if map { delimited(number, &delimited(2, &inner)) } else { delimited(number, &inner) }
                })
            });
            for Field(number, _, kind) in message.fields {
                if let One(next) | Boxed(next) | Many(next) | Map(next) = kind {
                    let step = (*number, matches!(kind, Map(_)));
                    queue.push_back((next, way.iter().copied().chain([step]).collect()));
                }
            }
        }
        seen.len()
    }

    #[test]
    fn the_schema_and_the_messages_have_the_same_fields() {
        let count = for_each_message(|message, wrap| {
            for candidate in (1..1100).chain([2000, 3000]) {
                let payloads = [
                    number(candidate, WireType::Varint, &[1]),
                    number(candidate, WireType::ThirtyTwoBit, &[0, 0, 128, 63]),
                    number(candidate, WireType::SixtyFourBit, &[0, 0, 0, 0, 0, 0, 240, 63]),
                    delimited(candidate, b""),
                    delimited(candidate, &[8, 0, 0, 0, 0, 0, 240, 63]),
                    delimited(candidate, b"12345678"),
                    delimited(candidate, &delimited(1, b"key")),
                ];
                let kept = payloads.iter().any(|payload| kept(&wrap(payload), &wrap(b"")));
                let name = message.field(candidate).map(|(_, field)| field.1);
                assert_eq!(
                    kept,
                    name.is_some(),
                    "field {candidate} {name:?} of {:?}",
                    message.fields.first().map(|f| f.1)
                );
            }
        });
        assert_eq!(count, ALL.len(), "every message of the schema can be reached from the model");
    }

    #[test]
    fn fields_are_in_order_and_few() {
        for (name, message) in ALL {
            assert!(message.fields.is_sorted_by(|a, b| a.0 < b.0), "{name}");
            assert!(message.fields.len() <= super::super::walk::MAX_FIELDS, "{name}");
        }
    }
}
