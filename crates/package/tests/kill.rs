//! A writer that is killed leaves the old package, and nothing that stays.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anemone_package::proto::mil::Program;
use anemone_package::proto::spec::{Model, ModelKind};
use anemone_package::{BlobType, Package, PackageWriter};

const DEST: &str = "ANEMONE_TEST_KILL_DEST";

fn model(version: i32) -> Model {
    let program = Program { version: 1, ..Program::default() };
    Model { specification_version: version, r#type: Some(ModelKind::MlProgram(program)), ..Model::default() }
}

/// The child of the test below: begins to write, says so, and waits to be killed.
#[test]
fn child_that_is_killed() {
    let Some(dest) = std::env::var_os(DEST) else { return };
    let mut writer = PackageWriter::create(Path::new(&dest)).expect("a writer");
    writer.add_blob(BlobType::UInt8, &[7; 1 << 20], 0).expect("a blob");
    assert!(std::process::Command::new("echo").arg("\nwriting").status().expect("echo runs").success());
    std::thread::sleep(std::time::Duration::from_secs(60));
}

#[test]
fn a_killed_writer() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let dest = folder.path().join("m.mlpackage");
    PackageWriter::create(&dest).expect("a writer").finish(&model(8)).expect("a package");
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "child_that_is_killed", "--nocapture"])
        .env(DEST, &dest)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    assert!(lines.any(|line| line.expect("a line").contains("writing")), "the child began to write");

    let count = || fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(count(), 2, "the package and the child's folder");
    drop(PackageWriter::create(&dest).expect("another writer"));
    assert_eq!(count(), 2, "the child lives, so its folder is left alone");

    child.kill().expect("a kill");
    child.wait().expect("a dead child");
    assert_eq!(count(), 2, "a killed process cleans nothing up");
    assert_eq!(Package::open(&dest).expect("the old package").model(), &model(8));

    PackageWriter::create(&dest).expect("a writer").finish(&model(9)).expect("a package");
    assert_eq!(count(), 1, "the next writer does");
    assert_eq!(Package::open(&dest).expect("the new package").model(), &model(9));
}
