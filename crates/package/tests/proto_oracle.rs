//! Our messages against those generated from Apple's schema (`coreml-proto`), over every fixture, in both directions.

mod common;

use anemone_package::proto::spec::{Model, kind_of_field};
use coreml_proto::proto as oracle;
use prost::Message;

#[test]
fn fixtures_survive_our_messages_as_the_oracle_sees_them() {
    for (name, path) in common::packages() {
        let bytes = common::model_bytes(&path);
        let expected = oracle::Model::decode(&bytes[..]).expect("the oracle decodes");
        let ours = Model::decode(&bytes[..]).expect("we decode");
        assert_eq!(ours.specification_version, expected.specification_version, "{name}");
        assert!(ours.program().is_some(), "{name}");
        let again = ours.encode_to_vec();
        let seen = oracle::Model::decode(&again[..]).expect("the oracle decodes what we encode");
        assert!(seen == expected, "{name}: the oracle sees another model in our encoding");
        assert_eq!(again.len(), bytes.len(), "{name}: an encoding of another length");
    }
}

#[test]
fn what_the_oracle_encodes_is_the_same_model_to_us() {
    for (name, path) in common::packages() {
        let bytes = common::model_bytes(&path);
        let ours = Model::decode(&bytes[..]).expect("we decode");
        let theirs = oracle::Model::decode(&bytes[..]).expect("the oracle decodes").encode_to_vec();
        assert!(Model::decode(&theirs[..]).expect("we decode") == ours, "{name}");
    }
}

#[test]
fn equal_models_encode_to_equal_bytes() {
    for (name, path) in common::packages() {
        let bytes = common::model_bytes(&path);
        let oracle_model = oracle::Model::decode(&bytes[..]).expect("the oracle decodes");
        // The oracle's maps are in random order, so these are two spellings of one model.
        let spellings = [oracle_model.encode_to_vec(), oracle_model.clone().encode_to_vec(), bytes];
        let encoded = spellings.map(|bytes| Model::decode(&bytes[..]).expect("we decode").encode_to_vec());
        assert!(encoded[0] == encoded[1] && encoded[1] == encoded[2], "{name}");
    }
}

#[test]
fn every_kind_of_model_that_the_oracle_knows_has_a_name() {
    // An empty message of each kind: tag and length 0.
    for number in 100..4000_u32 {
        let mut bytes = Vec::new();
        prost::encoding::encode_key(number, prost::encoding::WireType::LengthDelimited, &mut bytes);
        bytes.push(0);
        let known = oracle::Model::decode(&bytes[..]).expect("an empty message").r#type.is_some();
        assert_eq!(kind_of_field(number).is_some(), known, "field {number}");
    }
}
