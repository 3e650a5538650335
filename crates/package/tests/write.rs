//! Writing and rewriting packages.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anemone_package::proto::mil::{
    Argument, Binding, BindingKind, BlobFileValue, Block, Function, Operation, Program, Value, ValueKind,
};
use anemone_package::proto::spec::{Model, ModelKind};
use anemone_package::proto::{blob_references, blob_references_mut};
use anemone_package::{Blob, BlobType, Package, PackageError, PackageWriter, WEIGHT_FILE, rewrite};
use proptest::prelude::*;
use tempfile::TempDir;

const MODEL: &str = "Data/com.apple.CoreML/model.mlmodel";
const WEIGHTS: &str = "Data/com.apple.CoreML/weights/weight.bin";

/// Every file below a folder, with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut queue = vec![folder.to_owned()];
    while let Some(next) = queue.pop() {
        for entry in fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                queue.push(path);
            } else {
                let relative = path.strip_prefix(folder).expect("below the folder").to_owned();
                found.insert(relative, fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

/// A model that refers to blobs at these offsets of a weight file.
fn model(offsets: &[u64]) -> Model {
    let operations = offsets.iter().map(|&offset| {
        let blob = BlobFileValue { file_name: WEIGHT_FILE.into(), offset };
        let value = Value { value: Some(ValueKind::BlobFileValue(blob)), ..Value::default() };
        let binding = Binding { binding: Some(BindingKind::Value(value)) };
        let inputs = [("x".to_owned(), Argument { arguments: vec![binding] })].into();
        Operation { r#type: "identity".into(), inputs, ..Operation::default() }
    });
    let block = Block { operations: operations.collect(), ..Block::default() };
    let function = Function {
        opset: "CoreML8".into(),
        block_specializations: [("CoreML8".to_owned(), block)].into(),
        ..Function::default()
    };
    let functions = [("main".to_owned(), function)].into();
    let program = Program { version: 1, functions, ..Program::default() };
    Model { specification_version: 9, r#type: Some(ModelKind::MlProgram(program)), ..Model::default() }
}

fn blobs(package: &Package) -> Vec<Blob> {
    let references = blob_references(package.model().program().expect("a program"));
    references.iter().map(|blob| package.blob(&blob.file_name, blob.offset).expect("a blob")).collect()
}

#[test]
fn every_type_written_is_read_back() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("m.mlpackage");
    let mut writer = PackageWriter::create(&path).expect("a writer");
    let mut offsets = Vec::new();
    let mut expected = Vec::new();
    for dtype in BlobType::ALL {
        for elements in [0, 1, 3, 7, 8, 63, 64, 65, 1000] {
            let (length, padding_bits) = dtype.bytes_for(elements).expect("small");
            let bytes: Vec<u8> = (0..length).map(|at| (at * 7 + elements) as u8).collect();
            let offset = writer.add_blob(dtype, &bytes, padding_bits).expect("a blob");
            offsets.push(offset);
            expected.push(Blob { dtype, bytes: bytes.into(), padding_bits });
        }
    }
    let model = model(&offsets);
    writer.finish(&model).expect("a package");
    let package = Package::open(&path).expect("a package");
    assert_eq!(package.model(), &model);
    assert_eq!(blobs(&package), expected);
    assert_eq!(files(folder.path()).len(), 3, "the manifest, the model, the weights and nothing else");
}

#[test]
fn equal_blobs_are_written_once_however_they_come() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("m.mlpackage");
    let mut writer = PackageWriter::create(&path).expect("a writer");
    let a = writer.add_blob(BlobType::Int8, &[1, 2, 3], 0).expect("a blob");
    let written = writer.weight_bytes();
    assert_eq!(writer.add_blob(BlobType::Int8, &[1, 2, 3], 0).expect("a blob"), a);
    let mut pieces = writer.blob_writer(BlobType::Int8, 0).expect("a blob");
    pieces.push(&[1]).expect("a piece");
    pieces.write_all(&[2, 3]).expect("a piece");
    assert_eq!(pieces.finish().expect("a blob"), a);
    // Begun and given up.
    writer.blob_writer(BlobType::Int8, 0).expect("a blob").push(&[9; 1000]).expect("a piece");
    assert_eq!(writer.weight_bytes(), written);

    let type_differs = writer.add_blob(BlobType::UInt8, &[1, 2, 3], 0).expect("a blob");
    let mut pieces = writer.blob_writer(BlobType::Int4, 4).expect("a blob");
    pieces.push(&[1, 2, 3]).expect("a piece");
    let padding_differs = pieces.finish().expect("a blob");
    let last = writer.add_blob(BlobType::Int4, &[1, 2, 3], 0).expect("a blob");
    writer.blob_writer(BlobType::Int8, 0).expect("a blob").push(&[9; 300_000]).expect("a piece");
    writer.finish(&model(&[a, type_differs, padding_differs, last])).expect("a package");

    let package = Package::open(&path).expect("a package");
    let read: Vec<_> = blobs(&package).into_iter().map(|blob| (blob.dtype, blob.elements(), blob.bytes)).collect();
    let bytes = bytes::Bytes::from_static(&[1, 2, 3]);
    let expected = [(BlobType::Int8, 3), (BlobType::UInt8, 3), (BlobType::Int4, 5), (BlobType::Int4, 6)];
    assert_eq!(read, expected.map(|(dtype, elements)| (dtype, elements, bytes.clone())));
    assert_eq!(fs::metadata(path.join(WEIGHTS)).expect("a file").len(), 64 + 4 * 128, "nothing given up stays");
}

#[test]
fn a_large_blob_in_pieces() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("m.mlpackage");
    let content: Vec<u8> = (0..3_000_001_u32).map(|at| (at ^ at >> 8) as u8).collect();
    let mut writer = PackageWriter::create(&path).expect("a writer");
    let mut pieces = writer.blob_writer(BlobType::UInt8, 0).expect("a blob");
    content.chunks(70_001).for_each(|piece| pieces.push(piece).expect("a piece"));
    let offset = pieces.finish().expect("a blob");
    writer.finish(&model(&[offset])).expect("a package");
    assert!(blobs(&Package::open(&path).expect("a package"))[0].bytes == content);
}

#[test]
fn without_weights_there_is_no_item_for_them() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("m.mlpackage");
    PackageWriter::create(&path).expect("a writer").finish(&model(&[])).expect("a package");
    let package = Package::open(&path).expect("a package");
    let items: Vec<_> = package.manifest().expect("a manifest").items.values().map(|item| &item.name).collect();
    assert_eq!(items, ["model.mlmodel"]);
    assert_eq!(files(&path).into_keys().collect::<Vec<_>>(), [Path::new(MODEL), Path::new("Manifest.json")]);

    let mut writer = PackageWriter::create(&path).expect("a writer");
    writer.blob_writer(BlobType::Int8, 0).expect("a blob").push(&[]).expect("a piece");
    writer.finish(&model(&[])).expect("a package");
    assert_eq!(files(&path).len(), 2, "a blob that was given up is no blob");
}

#[test]
fn what_would_not_be_read_is_not_written() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("m.mlpackage");
    let writer = || PackageWriter::create(&path).expect("a writer");
    assert!(writer().add_blob(BlobType::Float16, &[1, 2, 3], 0).is_err());
    assert!(writer().add_blob(BlobType::Float16, &[1, 2], 4).is_err());
    assert!(writer().add_blob(BlobType::UInt3, &[1, 2], 0).is_err());
    let error = writer().finish(&model(&[64])).expect_err("no such blob");
    assert!(error.to_string().contains("byte 64"), "{error}");
    let mut elsewhere = writer();
    let mut other_file = model(&[elsewhere.add_blob(BlobType::Int8, &[1], 0).expect("a blob")]);
    let Some(ModelKind::MlProgram(program)) = &mut other_file.r#type else { panic!("a program") };
    blob_references_mut(program)[0].file_name = "@model_path/weights/other.bin".into();
    assert!(elsewhere.finish(&other_file).is_err());
    assert!(writer().finish(&Model { specification_version: 5, ..model(&[]) }).is_err());
    assert!(writer().finish(&Model { r#type: None, ..model(&[]) }).is_err());
    let mut deep = model(&[]);
    let Some(ModelKind::MlProgram(program)) = &mut deep.r#type else { panic!("a program") };
    let nested = (0..60).fold(Block::default(), |inner, _| Block {
        operations: vec![Operation { blocks: vec![inner], ..Operation::default() }],
        ..Block::default()
    });
    program.functions.get_mut("main").expect("main").block_specializations.insert("CoreML8".into(), nested);
    assert!(writer().finish(&deep).is_err());
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is left of any of them");
}

#[test]
fn rewritten_fixtures_are_the_same_packages_and_the_same_bytes_each_time() {
    for (name, path) in common::packages() {
        let folder = TempDir::new().expect("a temporary folder");
        let [first, second, third] = ["1", "2", "3"].map(|name| folder.path().join(name));
        let package = Package::open(&path).expect("a package");
        rewrite(&package, &first, package.model().clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        rewrite(&package, &second, package.model().clone()).expect("a second time");
        assert!(files(&first) == files(&second), "{name}");
        let rewritten = Package::open(&first).expect("a package");
        rewrite(&rewritten, &third, rewritten.model().clone()).expect("a rewritten one rewritten");
        assert!(files(&first) == files(&third), "{name}");
        assert!(blobs(&package) == blobs(&rewritten), "{name}");

        let mut expected = package.model().clone();
        let mut found = rewritten.model().clone();
        for model in [&mut expected, &mut found] {
            let Some(ModelKind::MlProgram(program)) = &mut model.r#type else { panic!("a program") };
            blob_references_mut(program).into_iter().for_each(|reference| reference.offset = 0);
        }
        assert!(expected == found, "{name}: more than offsets changed");
        let [before, after] = [&path, &first].map(|path| fs::metadata(path.join(WEIGHTS)).expect("weights").len());
        assert!(after <= before, "{name}: {before} bytes of weights became {after}");
        assert_ne!(package.digest().expect("a digest"), [0; 32], "{name}");
    }
}

/// A copy of a fixture, to be enriched with what we do not know.
fn enriched(folder: &Path, enrich_model: impl Fn(&mut Vec<u8>)) -> PathBuf {
    let path = folder.join("enriched.mlpackage");
    for (file, mut content) in files(&common::fixtures().join("ios16_lut4/model.mlpackage")) {
        fs::create_dir_all(path.join(&file).parent().expect("a folder")).expect("a folder");
        if file == Path::new(MODEL) {
            enrich_model(&mut content);
        }
        fs::write(path.join(file), content).expect("a file");
    }
    path
}

#[test]
fn what_we_do_not_know_survives_a_rewrite() {
    let folder = TempDir::new().expect("a temporary folder");
    // Field 4000 of the model, a string; field 4001, a number.
    let unknown = b"\x82\xfa\x01\x05hello\x88\xfa\x01\x07";
    let path = enriched(folder.path(), |model| model.extend(unknown));
    let manifest = path.join("Manifest.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&manifest).expect("a manifest")).expect("JSON");
    json["futureKey"] = serde_json::json!({"nested": [1, 2]});
    let items = json["itemInfoEntries"].as_object_mut().expect("items");
    for item in items.values_mut() {
        item["futureItemKey"] = true.into();
    }
    items.insert("extra-id".into(), serde_json::json!({"path": "org.example/notes", "name": "notes"}));
    fs::write(&manifest, json.to_string()).expect("a manifest");
    for file in ["Data/org.example/notes/a.txt", "Data/com.apple.CoreML/weights/readme.txt", "LICENSE"] {
        fs::create_dir_all(path.join(file).parent().expect("a folder")).expect("a folder");
        fs::write(path.join(file), format!("content of {file}")).expect("a file");
    }

    let package = Package::open(&path).expect("a package");
    assert_eq!(package.unknown_fields().count(), 2);
    assert_eq!(package.unknown_fields().nested_count(), 0);
    let to = folder.path().join("rewritten");
    rewrite(&package, &to, package.model().clone()).expect("a rewritten package");

    let after = Package::open(&to).expect("a package");
    assert_eq!(after.unknown_fields(), package.unknown_fields());
    assert!(fs::read(to.join(MODEL)).expect("a model").ends_with(unknown));
    let before = files(&path);
    for (file, content) in files(&to) {
        assert!(file.ends_with("Manifest.json") || file == Path::new(MODEL) || before[&file] == content, "{file:?}");
    }
    assert_eq!(files(&to).len(), before.len());
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(to.join("Manifest.json")).expect("a manifest")).expect("JSON");
    assert_eq!(json["futureKey"], serde_json::json!({"nested": [1, 2]}));
    assert_eq!(
        json["itemInfoEntries"]["extra-id"],
        serde_json::json!({
            "author": "", "description": "", "name": "notes", "path": "org.example/notes",
        })
    );
    let kept =
        json["itemInfoEntries"].as_object().expect("items").values().filter(|item| item["futureItemKey"] == true);
    assert_eq!(kept.count(), 2, "of the model's item and of the weights'");
    assert_eq!(json["itemInfoEntries"].as_object().expect("items").len(), 3);

    // In place.
    rewrite(&package, &path, package.model().clone()).expect("a package rewritten in place");
    assert!(files(&path) == files(&to));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
}

#[test]
fn what_cannot_be_carried_is_refused_by_name() {
    let folder = TempDir::new().expect("a temporary folder");
    // A second description (the messages merge) with field 77.
    let path = enriched(folder.path(), |model| model.extend(b"\x12\x03\xe8\x04\x01"));
    let package = Package::open(&path).expect("a package");
    assert_eq!(package.unknown_fields().nested_paths(), ["Model.description #77"]);
    let error = rewrite(&package, &folder.path().join("rewritten"), package.model().clone()).expect_err("refused");
    assert!(error.to_string().contains("Model.description #77"), "{error}");
    assert!(matches!(error, PackageError::CannotCarry { .. }));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing is left");
}

#[cfg(unix)]
#[test]
fn links_are_carried_as_files_or_refused() {
    use std::os::unix::fs::symlink;
    let folder = TempDir::new().expect("a temporary folder");
    let path = enriched(folder.path(), |_| ());
    let package = Package::open(&path).expect("a package");
    let to = folder.path().join("rewritten");
    symlink("Manifest.json", path.join("link")).expect("a link");
    rewrite(&package, &to, package.model().clone()).expect("a package");
    assert!(to.join("link").symlink_metadata().expect("a file").is_file());
    symlink("/etc/passwd", path.join("escape")).expect("a link");
    let error = rewrite(&package, &to, package.model().clone()).expect_err("a link outside");
    assert!(matches!(error, PackageError::Outside { .. }), "{error}");
    fs::remove_file(path.join("escape")).expect("a link removed");
    symlink(".", path.join("loop")).expect("a link");
    let error = rewrite(&package, &to, package.model().clone()).expect_err("a link to a folder");
    assert!(error.to_string().contains("neither a file nor a folder"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_blobs_written_are_read_back(blobs_in in prop::collection::vec((0_usize..17, 0_u64..600, any::<u8>()), 0..12)) {
        let folder = TempDir::new().expect("a temporary folder");
        let path = folder.path().join("m.mlpackage");
        let mut writer = PackageWriter::create(&path).expect("a writer");
        let mut offsets = Vec::new();
        let mut expected = Vec::new();
        for (dtype, elements, seed) in blobs_in {
            let dtype = BlobType::ALL[dtype];
            let (length, padding_bits) = dtype.bytes_for(elements).expect("small");
            let bytes: Vec<u8> = (0..length).map(|at| seed.wrapping_mul(at as u8)).collect();
            if seed % 2 == 0 {
                offsets.push(writer.add_blob(dtype, &bytes, padding_bits).expect("a blob"));
            } else {
                let mut pieces = writer.blob_writer(dtype, padding_bits).expect("a blob");
                bytes.chunks(1 + usize::from(seed)).for_each(|piece| pieces.push(piece).expect("a piece"));
                offsets.push(pieces.finish().expect("a blob"));
            }
            expected.push(Blob { dtype, bytes: bytes.into(), padding_bits });
        }
        writer.finish(&model(&offsets)).expect("a package");
        prop_assert_eq!(blobs(&Package::open(&path).expect("a package")), expected);
    }
}
