//! Damaged and hostile models: refused or read, never a panic.

mod common;

use anemone_mil::text::{NoBlobs, parse};
use anemone_mil::{DType, Model, decode_model, verify_model};
use anemone_package::proto::{mil, spec};
use bytes::Bytes;
use proptest::prelude::*;
use prost::Message;

/// A small valid model with a nested block, as a message.
fn message() -> spec::Model {
    let text = r#"program(1.3) [buildInfo = dict<string, string>({{"a", "b"}})] {
        func main<ios18>(tensor<fp16, [1, 2]> x, state<tensor<fp16, [2]>> s) {
            int32 axis = const()[val = int32(-1)];
            tensor<uint4, [3]> u = const()[val = tensor<uint4, [3]>([1, 2, 15])];
            tensor<fp16, [2]> old = read_state(input = s)[name = string("old")];
            tensor<fp16, [1, 2]> y = add(x = x, y = tensor<fp16, [2]>([0x1p+0, -inf]));
            tensor<fp16, [1, 2]> z = mystery(x = (x, y), l = list<int32, 2>([1, 2]), t = tuple<bool, fp32>((true, 1)))
            block(int32 i) { tensor<fp16, [1, 2]> w = add(x = x, y = y); } -> (w);
            write_state(input = s, data = old);
        } -> (y);
    }"#;
    let program = parse(text, &NoBlobs).unwrap();
    let model = Model { specification_version: 9, program, ..Model::default() };
    let folder = tempfile::tempdir().unwrap();
    let mut model = model;
    // Ports for the description, so that it can be encoded.
    let main = model.program.functions.get_mut("main").unwrap();
    let port = |name: &str| anemone_mil::Port {
        name: name.into(),
        description: String::new(),
        kind: anemone_mil::PortKind::Array { dtype: DType::F16, shape: anemone_mil::PortShape::Fixed(vec![1, 2]) },
        optional: None,
    };
    main.ports.inputs.push(port("x"));
    main.ports.outputs.push(port("y"));
    let ty = anemone_mil::StaticType::new(DType::F16, &[2]);
    main.ports.states.push(anemone_mil::StatePort { name: "s".into(), description: String::new(), ty });
    let mut writer = anemone_package::PackageWriter::create(&folder.path().join("m.mlpackage")).unwrap();
    anemone_mil::encode::encode(&model, &mut writer).unwrap()
}

fn judge(bytes: Vec<u8>) {
    let Ok(decoded) = anemone_package::proto::decode_model(&Bytes::from(bytes)) else { return };
    if let Ok(model) = decode_model(&decoded.model, &NoBlobs) {
        let faults = verify_model(&model);
        faults.iter().for_each(|d| assert!(!d.to_string().contains(char::is_control), "{d}"));
        let text = model.program.to_string();
        let mut stripped = model.program.clone();
        stripped.functions.values_mut().for_each(|f| f.ports = Default::default());
        match parse(&text, &NoBlobs) {
            Ok(read) => assert!(read == stripped, "{text}"),
            Err(e) => panic!("{e}:\n{text}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn damaged_messages_never_panic(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut in any::<Option<prop::sample::Index>>()) {
        thread_local!(static GOOD: Vec<u8> = message().encode_to_vec());
        let mut bytes = GOOD.with(Clone::clone);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            let length = cut.index(bytes.len());
            // Half of the cases are damaged only.
            if length % 2 == 0 {
                bytes.truncate(length);
            }
        }
        judge(bytes);
    }
}

fn with_value(value: mil::Value) -> Result<Model, String> {
    let mut message = message();
    let Some(spec::ModelKind::MlProgram(program)) = message.r#type.as_mut() else { panic!("a program") };
    program.attributes.insert("hostile".into(), value);
    decode_model(&message, &NoBlobs).map_err(|e| e.to_string())
}

fn tensor_type(dtype: mil::DataType, dims: &[u64]) -> mil::ValueType {
    let dimensions = dims
        .iter()
        .map(|&size| mil::Dimension { dimension: Some(mil::DimensionKind::Constant(mil::ConstantDimension { size })) });
    mil::ValueType {
        r#type: Some(mil::TypeKind::TensorType(mil::TensorType {
            data_type: dtype as i32,
            rank: dims.len() as i64,
            dimensions: dimensions.collect(),
            ..Default::default()
        })),
    }
}

fn immediate(ty: mil::ValueType, data: Option<mil::TensorData>) -> mil::Value {
    let tensor = mil::ImmediateKind::Tensor(mil::TensorValue { value: data });
    mil::Value {
        r#type: Some(ty),
        value: Some(mil::ValueKind::ImmediateValue(mil::ImmediateValue { value: Some(tensor) })),
        ..Default::default()
    }
}

#[test]
fn constants_that_lie_about_their_size_are_refused() {
    let ints = |n: usize| Some(mil::TensorData::Ints(mil::RepeatedInts { values: vec![300; n] }));
    use mil::DataType as D;
    for (dtype, dims, data, message) in [
        (D::Int32, &[3][..], ints(2), "expected 3 elements for tensor<int32, [3]>, found 2"),
        (D::Int32, &[1 << 39], ints(2), "expected 549755813888 elements for tensor<int32, [549755813888]>, found 2"),
        (
            D::Int32,
            &[1 << 32, 1 << 32],
            ints(2),
            "expected at most 1099511627776 elements, found axes [4294967296, 4294967296]",
        ),
        (
            D::Int32,
            &[u64::MAX, 0],
            None,
            "expected at most 1099511627776 elements, found axes [18446744073709551615, 0]",
        ),
        (D::Int32, &[1; 17], ints(1), "expected at most 16 axes, found 17"),
        (D::Int32, &[], None, "expected the elements of tensor<int32, []>, found none"),
        (D::UInt8, &[1], ints(1), "expected elements of uint8, found 300"),
        (D::Float16, &[1], ints(1), "expected the elements of tensor<fp16, [1]>, found int32 elements"),
        (D::Unused, &[1], ints(1), "expected an element type of MIL, found number 0"),
        (
            D::UInt4,
            &[3],
            Some(mil::TensorData::Bytes(mil::RepeatedBytes { values: Bytes::from_static(&[1]) })),
            "expected 2 bytes for tensor<uint4, [3]>, found 1",
        ),
    ] {
        let found = with_value(immediate(tensor_type(dtype, dims), data)).unwrap_err();
        assert_eq!(found, format!("model, attribute `hostile`: {message}"));
    }
}

#[test]
fn deep_types_and_constants_are_refused() {
    let mut ty = tensor_type(mil::DataType::Int32, &[]);
    let mut value = immediate(ty.clone(), Some(mil::TensorData::Ints(mil::RepeatedInts { values: vec![1] })));
    for _ in 0..30 {
        ty = mil::ValueType { r#type: Some(mil::TypeKind::TupleType(mil::TupleType { types: vec![ty] })) };
        let tuple = mil::ImmediateKind::Tuple(mil::TupleValue { values: vec![value] });
        value = mil::Value {
            r#type: Some(ty.clone()),
            value: Some(mil::ValueKind::ImmediateValue(mil::ImmediateValue { value: Some(tuple) })),
            ..Default::default()
        };
    }
    assert!(with_value(value).unwrap_err().contains("nested at most 24 deep"));
}

#[test]
fn deep_blocks_are_refused_with_their_place() {
    let mut message = message();
    let mut block = mil::Block::default();
    for _ in 0..30 {
        let op = mil::Operation { r#type: "cond".into(), blocks: vec![block], ..Default::default() };
        block = mil::Block { operations: vec![op], ..Default::default() };
    }
    let Some(spec::ModelKind::MlProgram(program)) = message.r#type.as_mut() else { panic!("a program") };
    let main = program.functions.get_mut("main").unwrap();
    main.block_specializations.insert("CoreML8".into(), block);
    let e = decode_model(&message, &NoBlobs).unwrap_err().to_string();
    assert!(
        e.starts_with("function `main`, op 0 `cond`, block 0, op 0 `cond`") && e.contains("at most 24 deep"),
        "{e}"
    );
}

#[test]
fn what_a_model_has_no_room_for_is_noted() {
    let mut message = message();
    let Some(spec::ModelKind::MlProgram(program)) = message.r#type.as_mut() else { panic!("a program") };
    program.doc_string = "text".into();
    let main = program.functions.get_mut("main").unwrap();
    main.block_specializations.insert("CoreML7".into(), mil::Block::default());
    let model = decode_model(&message, &NoBlobs).unwrap();
    assert_eq!(
        model.left_out,
        ["the program's doc string", "the blocks of function `main` for operation sets other than `CoreML8`"]
    );
}
