//! Opening packages: the fixtures, damaged ones, hostile ones.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use anemone_package::proto::spec::{Model, ModelKind};
use anemone_package::proto::{ModelError, blob_references, decode_model};
use anemone_package::{Package, PackageError};
use bytes::Bytes;
use coreml_proto::proto as oracle;
use proptest::prelude::*;
use prost::Message;
use tempfile::TempDir;

const MODEL: &str = "Data/com.apple.CoreML/model.mlmodel";
const WEIGHTS: &str = "Data/com.apple.CoreML/weights/weight.bin";

/// A copy of a small fixture that a test may damage.
fn copy() -> (TempDir, PathBuf) {
    let from = common::fixtures().join("ios16_lut4/model.mlpackage");
    let folder = TempDir::new().expect("a temporary folder");
    let to = folder.path().join("copy.mlpackage");
    for file in ["Manifest.json", MODEL, WEIGHTS] {
        fs::create_dir_all(to.join(file).parent().expect("a folder")).expect("a new folder");
        fs::write(to.join(file), fs::read(from.join(file)).expect("a fixture's file")).expect("a copy");
    }
    (folder, to)
}

fn read_all_blobs(package: &Package) -> Result<usize, PackageError> {
    let references = blob_references(package.model().program().expect("a program"));
    for reference in &references {
        package.blob(&reference.file_name, reference.offset)?;
    }
    Ok(references.len())
}

#[test]
fn every_blob_of_every_fixture_is_there() {
    for (name, path) in common::packages() {
        let package = Package::open(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(package.unknown_fields().is_empty(), "{name}");
        let references = blob_references(package.model().program().expect("a program"));
        assert!(!references.is_empty(), "{name}");
        let file = fs::read(path.join(WEIGHTS)).expect("a weight file");
        let mut offsets = std::collections::BTreeSet::new();
        for reference in references {
            let blob = package.blob(&reference.file_name, reference.offset).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(blob.elements() > 0, "{name}");
            let start = reference.offset as usize + 64;
            assert!(blob.bytes == file[start..start + blob.bytes.len()], "{name}");
            offsets.insert(reference.offset);
        }
        let count = u32::from_le_bytes(file[..4].try_into().expect("four bytes"));
        assert_eq!(offsets.len(), count as usize, "{name}: every blob of the file is referred to");
    }
}

#[test]
fn the_shape_of_a_constant_is_the_number_of_its_elements() {
    for (name, path) in common::packages() {
        let package = Package::open(&path).expect("a package");
        let model = oracle::Model::decode(&common::model_bytes(&path)[..]).expect("the oracle decodes");
        let Some(oracle::model::Type::MlProgram(program)) = model.r#type else { panic!("{name}: no program") };
        let mut seen = 0;
        for function in program.functions.values() {
            for operation in function.block_specializations.values().flat_map(|block| &block.operations) {
                let Some(value) = operation.attributes.get("val") else { continue };
                let Some(oracle::mil_spec::value::Value::BlobFileValue(blob)) = &value.value else { continue };
                let Some(oracle::mil_spec::value_type::Type::TensorType(tensor)) =
                    value.r#type.as_ref().and_then(|value_type| value_type.r#type.as_ref())
                else {
                    panic!("{name}: a blob that is no tensor")
                };
                let elements: u64 = tensor
                    .dimensions
                    .iter()
                    .map(|dimension| match dimension.dimension {
                        Some(oracle::mil_spec::dimension::Dimension::Constant(constant)) => constant.size,
                        _ => panic!("{name}: a constant of unknown shape"),
                    })
                    .product();
                assert_eq!(package.blob(&blob.file_name, blob.offset).expect("a blob").elements(), elements, "{name}");
                seen += 1;
            }
        }
        assert!(seen > 0, "{name}");
    }
}

#[test]
fn blobs_share_one_map() {
    let (_folder, path) = copy();
    let package = Package::open(&path).expect("a package");
    let reference = blob_references(package.model().program().expect("a program"))[0].clone();
    let [a, b] = [(); 2].map(|()| package.blob(&reference.file_name, reference.offset).expect("a blob"));
    assert_eq!(a.bytes.as_ptr(), b.bytes.as_ptr());
    assert_eq!(a.bytes.as_ptr() as usize % 64, 0, "a map begins at a page, so blobs are aligned in memory as well");
    drop(package);
    assert_eq!(a, b, "a blob outlives its package");
}

#[test]
fn a_bare_model_file_opens_with_the_weights_beside_it() {
    let (_folder, path) = copy();
    let bare = Package::open(&path.join(MODEL)).expect("a bare model file");
    assert!(bare.manifest().is_none());
    let whole = Package::open(&path).expect("a package");
    assert_eq!(bare.model(), whole.model());
    assert_eq!(read_all_blobs(&bare).expect("blobs"), read_all_blobs(&whole).expect("blobs"));
    assert_eq!(bare.digest().expect("a digest"), whole.digest().expect("a digest"));
}

#[test]
fn the_digest_depends_on_the_model_and_on_the_weights() {
    let (_folder, path) = copy();
    let digest = || Package::open(&path).expect("a package").digest().expect("a digest");
    let original = digest();
    assert_eq!(original, digest());
    for file in [WEIGHTS, MODEL] {
        let before = fs::read(path.join(file)).expect("a file");
        let mut after = before.clone();
        if file == MODEL {
            // Marks the model as updatable: field 10.
            after.extend([80, 1]);
        } else {
            *after.last_mut().expect("not empty") ^= 1;
        }
        fs::write(path.join(file), &after).expect("a change");
        assert_ne!(digest(), original, "{file}");
        fs::write(path.join(file), &before).expect("the change undone");
    }
    assert_eq!(digest(), original);
}

#[test]
fn truncated_and_damaged_files_never_panic() {
    let (_folder, path) = copy();
    for (file, step) in [("Manifest.json", 1), (MODEL, 41)] {
        let whole = fs::read(path.join(file)).expect("a file");
        for length in (0..whole.len()).step_by(step) {
            fs::write(path.join(file), &whole[..length]).expect("a truncated file");
            let opened = Package::open(&path);
            assert!(opened.is_err() || file == MODEL || length == whole.len() - 1, "{file} truncated to {length}");
        }
        for at in (0..whole.len()).step_by(step) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(path.join(file), &damaged).expect("a damaged file");
            if let Ok(package) = Package::open(&path) {
                let _ = read_all_blobs(&package);
            }
        }
        fs::write(path.join(file), &whole).expect("the file as it was");
    }
    let model = Bytes::from(fs::read(path.join(MODEL)).expect("a file"));
    for length in 0..model.len() {
        let _ = decode_model(&model.slice(..length));
    }
    for at in 0..model.len() {
        let mut damaged = model.to_vec();
        damaged[at] ^= 1 << (at % 8);
        let _ = decode_model(&damaged.into());
    }
    let whole = fs::read(path.join(WEIGHTS)).expect("a file");
    for length in (0..whole.len()).step_by(64).flat_map(|length| [length, length + 1, length + 63]) {
        fs::write(path.join(WEIGHTS), &whole[..length.min(whole.len())]).expect("a truncated file");
        let package = Package::open(&path).expect("the model is whole");
        let last_data_end = whole.len() - 64;
        if length <= last_data_end {
            let error = read_all_blobs(&package).expect_err("truncated weights");
            assert!(error.to_string().contains("weight.bin"), "{error}");
        }
    }
}

#[test]
fn missing_files_are_named() {
    for file in ["Manifest.json", MODEL, WEIGHTS] {
        let (_folder, path) = copy();
        fs::remove_file(path.join(file)).expect("a file to remove");
        let error = Package::open(&path).and_then(|package| read_all_blobs(&package)).expect_err("a missing file");
        let name = Path::new(file).file_name().expect("a name").to_string_lossy().into_owned();
        assert!(error.to_string().contains(&name), "{error}");
    }
}

#[test]
fn other_kinds_of_models_are_named() {
    let open = |bytes: &[u8]| {
        let folder = TempDir::new().expect("a temporary folder");
        let path = folder.path().join("m.mlmodel");
        fs::write(&path, bytes).expect("a model file");
        match Package::open(&path).expect_err("not an ML Program") {
            PackageError::Model { source, path: named } => {
                assert!(named.ends_with("m.mlmodel"));
                source
            }
            other => panic!("{other}"),
        }
    };
    let network = oracle::Model {
        specification_version: 4,
        r#type: Some(oracle::model::Type::NeuralNetwork(oracle::NeuralNetwork::default())),
        ..Default::default()
    };
    let error = open(&network.encode_to_vec());
    assert_eq!(error, ModelError::NotMlProgram { kind: "neuralNetwork", specification_version: 4 });
    assert!(error.to_string().contains("neuralNetwork (specification version 4)"), "{error}");
    let pipeline = oracle::Model {
        specification_version: 5,
        r#type: Some(oracle::model::Type::Pipeline(oracle::Pipeline::default())),
        ..Default::default()
    };
    assert_eq!(
        open(&pipeline.encode_to_vec()),
        ModelError::NotMlProgram { kind: "pipeline", specification_version: 5 }
    );
    for version in [-1, 0, 5, 11, i32::MAX] {
        let model = Model {
            specification_version: version,
            r#type: Some(ModelKind::MlProgram(Default::default())),
            ..Default::default()
        };
        assert_eq!(open(&model.encode_to_vec()), ModelError::SpecificationVersion { found: i64::from(version) });
    }
    assert_eq!(open(b""), ModelError::NoKind { specification_version: 0, fields: vec![] });
    assert!(matches!(open(b"\x08\x09\xaa\xbb\x01\x00"), ModelError::NoKind { specification_version: 9, .. }));
    assert!(matches!(open(b"PK\x03\x04 not a model"), ModelError::Malformed { .. } | ModelError::Truncated { .. }));
    let both = [network.encode_to_vec(), pipeline.encode_to_vec()].concat();
    assert_eq!(open(&both), ModelError::TwoKinds { first: "neuralNetwork", second: "pipeline" });
}

#[test]
fn folders_that_are_no_packages_are_told_apart() {
    let folder = TempDir::new().expect("a temporary folder");
    let error = Package::open(folder.path()).expect_err("an empty folder");
    assert!(error.to_string().contains("without `Manifest.json`"), "{error}");
    fs::write(folder.path().join("coremldata.bin"), b"").expect("a file");
    let error = Package::open(folder.path()).expect_err("a compiled model");
    assert!(error.to_string().contains("compiled model"), "{error}");
    let error = Package::open(&folder.path().join("nothing.mlpackage")).expect_err("nothing");
    assert!(error.to_string().contains("nothing.mlpackage"), "{error}");
}

#[test]
fn weight_files_outside_are_refused() {
    let (_folder, path) = copy();
    let package = Package::open(&path).expect("a package");
    for name in [
        "weights/weight.bin",
        "/etc/passwd",
        "@model_path/../../../outside",
        "@model_path//etc/passwd",
        "@model_path/",
        "@model_path/weights\\weight.bin",
        "",
    ] {
        assert!(matches!(package.blob(name, 64), Err(PackageError::Outside { .. })), "{name}");
    }
}

#[cfg(unix)]
#[test]
fn links_may_not_leave_the_package() {
    use std::os::unix::fs::symlink;
    for file in ["Manifest.json", MODEL, WEIGHTS] {
        let (folder, path) = copy();
        let outside = folder.path().join("outside");
        fs::rename(path.join(file), &outside).expect("a move");
        symlink(&outside, path.join(file)).expect("a link");
        let error = Package::open(&path).and_then(|package| read_all_blobs(&package)).expect_err("a link outside");
        assert!(matches!(error, PackageError::Outside { .. }), "{file}: {error}");

        let inside = path.join("Data/elsewhere");
        fs::rename(&outside, &inside).expect("a move");
        fs::remove_file(path.join(file)).expect("the link");
        symlink(&inside, path.join(file)).expect("a link");
        Package::open(&path).and_then(|package| read_all_blobs(&package)).expect("a link inside");
    }
}

#[cfg(unix)]
#[test]
fn a_package_in_the_cache_of_hugging_face_links_to_its_blobs() {
    use std::os::unix::fs::symlink;
    let (folder, original) = copy();
    let download = folder.path().join("models--owner--name");
    let path = download.join("snapshots/abc/m.mlpackage");
    fs::create_dir_all(download.join("blobs")).expect("a folder");
    for (index, file) in ["Manifest.json", MODEL, WEIGHTS].into_iter().enumerate() {
        fs::create_dir_all(path.join(file).parent().expect("a folder")).expect("a folder");
        let blob = download.join(format!("blobs/{index}"));
        fs::copy(original.join(file), &blob).expect("a copy");
        symlink(&blob, path.join(file)).expect("a link");
    }
    let package = Package::open(&path).expect("a package");
    assert!(read_all_blobs(&package).expect("blobs") > 0);
    let bare = Package::open(&path.join(MODEL)).expect("a bare model");
    assert!(read_all_blobs(&bare).expect("blobs") > 0);
}

#[cfg(unix)]
#[test]
fn a_pipe_does_not_block() {
    let (_folder, path) = copy();
    fs::remove_file(path.join(WEIGHTS)).expect("a file to remove");
    let made = std::process::Command::new("mkfifo").arg(path.join(WEIGHTS)).status().expect("mkfifo runs");
    assert!(made.success());
    let package = Package::open(&path).expect("a package");
    let error = read_all_blobs(&package).expect_err("a pipe");
    assert!(error.to_string().contains("not a regular file"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn models_with_any_damage_never_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..4)), 1..6),
    ) {
        let mut bytes = common::model_bytes(&common::fixtures().join("ios16_sparse/model.mlpackage"));
        for (at, insert) in edits {
            let at = at.index(bytes.len());
            let end = (at + insert.len() / 2).min(bytes.len());
            bytes.splice(at..end, insert);
        }
        if let Ok(decoded) = decode_model(&bytes.into()) {
            let again = decode_model(&decoded.model.encode_to_vec().into()).expect("what was read can be written");
            prop_assert_eq!(again.model, decoded.model);
        }
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = anemone_package::manifest::parse(&bytes);
        let _ = decode_model(&bytes.into());
    }
}
