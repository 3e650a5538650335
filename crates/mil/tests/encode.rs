//! Encoding: what is written and read back is the same, in the form that coremltools gave it.

mod common;

use std::io;
use std::path::Path;
use std::sync::Arc;

use anemone_mil::build::FunctionBuilder;
use anemone_mil::constant::Deferred;
use anemone_mil::{
    Const, DType, MilError, Model, Opset, Port, PortDefault, PortKind, PortShape, Program, StatePort, StaticType,
    TensorConst, TensorType, decode, encode, load,
};
use anemone_package::proto::blob_references_mut;
use anemone_package::proto::spec;
use anemone_package::{Package, PackageWriter};

fn files(package: &Path) -> [Vec<u8>; 3] {
    ["Manifest.json", "Data/com.apple.CoreML/model.mlmodel", "Data/com.apple.CoreML/weights/weight.bin"]
        .map(|file| std::fs::read(package.join(file)).unwrap_or_default())
}

/// The message without what may differ: where in the weight file each blob lies, and the order of functions.
fn without_offsets(model: &spec::Model) -> spec::Model {
    let mut model = model.clone();
    let Some(spec::ModelKind::MlProgram(program)) = model.r#type.as_mut() else { panic!("no program") };
    blob_references_mut(program).into_iter().for_each(|blob| blob.offset = 0);
    model.description.iter_mut().for_each(|d| d.functions.sort_by(|a, b| a.name.cmp(&b.name)));
    model
}

#[test]
fn every_fixture_survives_and_is_stored_as_coremltools_stored_it() {
    let folder = tempfile::tempdir().unwrap();
    for (name, path) in common::packages() {
        let package = Package::open(&path).unwrap();
        let model = decode(&package).unwrap();
        let (one, two) = (folder.path().join(format!("{name}.mlpackage")), folder.path().join("again.mlpackage"));
        encode::write(&model, &one).unwrap_or_else(|e| panic!("{name}: {e}"));
        let written = Package::open(&one).unwrap();
        let read = decode(&written).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(read == model, "{name}: another model");
        let (ours, theirs) = (without_offsets(written.model()), without_offsets(package.model()));
        assert_eq!(ours.description, theirs.description, "{name}");
        for (function, ours) in &ours.program().unwrap().functions {
            let theirs = &theirs.program().unwrap().functions[function];
            let blocks = (&ours.block_specializations[&ours.opset], &theirs.block_specializations[&ours.opset]);
            for (a, b) in blocks.0.operations.iter().zip(&blocks.1.operations) {
                assert!(a == b, "{name}:\n{a:?}\n{b:?}");
            }
        }
        assert!(ours == theirs, "{name}: another message");
        // coremltools does not always recognize equal constants.
        assert!(files(&one)[2].len() <= files(&path)[2].len(), "{name}: more weights");

        encode::rewrite(&read, &written, &two).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(files(&one) == files(&two), "{name}: other bytes for the same model");
    }
}

/// A function `main` of one constant output, with its port.
fn model_of(c: Const, version: i32, opset: Opset) -> Model {
    let mut b = FunctionBuilder::new(opset);
    let x = b.input("x", TensorType::fixed(DType::F32, &[1]));
    let y = b.constant("y", c);
    let z = b.op("add", "z", &[("x", x.into()), ("y", x.into())]).unwrap();
    let mut main = b.finish(&[z]);
    let port = |name: &str| Port {
        name: name.into(),
        description: String::new(),
        kind: PortKind::Array { dtype: DType::F32, shape: PortShape::Fixed(vec![1]) },
        optional: None,
    };
    main.ports.inputs.push(port("x"));
    main.ports.outputs.push(port("z"));
    assert_eq!(main.value(y).name, "y");
    let program = Program { version: 1, functions: [("main".to_owned(), main)].into(), ..Program::default() };
    Model { specification_version: version, program, ..Model::default() }
}

#[test]
fn every_element_type_survives_in_the_model_and_in_the_weight_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.mlpackage");
    for dtype in DType::ALL.into_iter().filter(|d| *d != DType::String) {
        for (n, version) in [(0, 9), (1, 9), (9, 9), (10, 9), (10, 8), (13, 9)] {
            // Truth values are 0 and 1; the unused bits of the last byte are 0.
            let mut bytes: Vec<u8> = (0..dtype.packed_bytes(n).unwrap()).map(|i| (i * 37 + 129) as u8).collect();
            if dtype == DType::Bool {
                bytes.iter_mut().for_each(|b| *b &= 1);
            }
            if let (Some(last), used @ 1..) = (bytes.last_mut(), n * dtype.bits() % 8) {
                *last &= (1 << used) - 1;
            }
            let c = TensorConst::new(StaticType::new(dtype, &[n]), bytes.into()).unwrap();
            let model = model_of(Const::Tensor(c), version, Opset::CoreML5);
            encode::write(&model, &path).unwrap_or_else(|e| panic!("{dtype} {n}: {e}"));
            let read = load(&path).unwrap_or_else(|e| panic!("{dtype} {n}: {e}"));
            assert!(read == model, "{dtype} {n}");
            let stored = read.program.functions["main"].body.ops[0].constant().unwrap().tensor().unwrap();
            let wide = [DType::I16, DType::U16, DType::I32, DType::U32].contains(&dtype);
            let never = [DType::Bool, DType::I64, DType::U64, DType::F64].contains(&dtype);
            assert_eq!(stored.blob.is_some(), n >= 10 && !never && !(wide && version < 9), "{dtype} {n} {version}");
        }
    }
}

#[test]
fn what_a_description_can_say_survives() {
    let mut model = model_of(1.0f32.into(), 9, Opset::CoreML8);
    let main = model.program.functions.get_mut("main").unwrap();
    main.ports.inputs[0].description = "what comes in".into();
    main.ports.inputs[0].optional = Some(PortDefault::Fill(0.5));
    main.ports.outputs[0].kind = PortKind::Array { dtype: DType::F32, shape: PortShape::Unspecified };
    main.ports.predicted_feature = "z".into();
    model.metadata.author = "somebody".into();
    model.metadata.user_defined.insert("k".into(), "v".into());
    model.updatable = true;
    model.training_inputs.push(Port {
        name: "t".into(),
        description: String::new(),
        kind: PortKind::Array {
            dtype: DType::I32,
            shape: PortShape::Range { default: vec![1, 2], bounds: vec![(1, Some(1)), (2, None)] },
        },
        optional: Some(PortDefault::Zero),
    });
    model.training_inputs.push(Port {
        name: "u".into(),
        description: String::new(),
        kind: PortKind::Array {
            dtype: DType::F16,
            shape: PortShape::Enumerated { default: vec![2], shapes: vec![vec![1], vec![2]] },
        },
        optional: None,
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.mlpackage");
    encode::write(&model, &path).unwrap();
    assert!(load(&path).unwrap() == model);

    // Several functions: the ports move into the descriptions of functions.
    model.default_function = Some("two".into());
    let mut two = model.program.functions["main"].clone();
    let state = StaticType::new(DType::F16, &[2, 3]);
    let mut b = FunctionBuilder::new(Opset::CoreML8);
    let s = b.state("cache", &state);
    let read = b.op("read_state", "read", &[("input", s.into())]).unwrap();
    let out = b.op("cast", "z", &[("x", read.into()), ("dtype", "fp32".into())]).unwrap();
    let stateful = b.finish(&[out]);
    two.ports.inputs.clear();
    two.ports.states.push(StatePort { name: "cache".into(), description: "the cache".into(), ty: state });
    two = anemone_mil::Function { ports: two.ports, ..stateful };
    model.program.functions.insert("two".into(), two);
    encode::write(&model, &path).unwrap();
    assert!(load(&path).unwrap() == model);
}

#[test]
fn nothing_is_lost_unseen_and_nothing_invalid_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.mlpackage");
    let mut model = model_of(1.0f32.into(), 9, Opset::CoreML8);
    model.left_out.push("doc strings of values".into());
    let e = encode::write(&model, &path).unwrap_err();
    assert_eq!(
        e.to_string(),
        "writing the model would lose doc strings of values; clear `Model::left_out` to lose it knowingly"
    );
    model.left_out.clear();
    model.program.functions.get_mut("main").unwrap().body.outputs.clear();
    assert!(matches!(encode::write(&model, &path), Err(MilError::Invalid { .. })));
    assert!(!path.exists());
}

/// Counts up, and counts how often it is asked.
#[derive(Debug)]
struct CountsUp(usize, std::sync::atomic::AtomicUsize);

impl Deferred for CountsUp {
    fn write(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        (0..self.0).try_for_each(|i| sink(&[i as u8]))
    }
}

#[test]
fn elements_made_while_writing_are_made_once_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.mlpackage");
    for n in [3, 64] {
        let maker = Arc::new(CountsUp(n, Default::default()));
        let c = Const::deferred(StaticType::new(DType::I8, &[n]), maker.clone());
        let mut model = model_of(c.clone(), 9, Opset::CoreML8);
        let main = model.program.functions.get_mut("main").unwrap();
        main.attributes.insert("same".into(), c);
        let mut writer = PackageWriter::create(&path).unwrap();
        let message = encode::encode(&model, &mut writer).unwrap();
        writer.finish(&message).unwrap();
        let read = load(&path).unwrap();
        let expected = Const::ints(DType::I8, &[n], &(0..n as i64).collect::<Vec<_>>());
        assert!(read.program.functions["main"].attributes["same"] == expected);
        assert!(read.program.functions["main"].body.ops[0].constant() == Some(&expected));
        // Small ones live in the model, each its own copy.
        assert_eq!(maker.1.load(std::sync::atomic::Ordering::Relaxed), if n == 3 { 2 } else { 1 });

        let short = Const::deferred(StaticType::new(DType::I8, &[n + 1]), Arc::new(CountsUp(n, Default::default())));
        let e = encode::write(&model_of(short, 9, Opset::CoreML8), &path).unwrap_err().to_string();
        assert!(e.starts_with("function `main`, op 0 `const` (`y`), attribute `val`: expected"), "{e}");
    }
}
