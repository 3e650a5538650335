//! A writer that is killed leaves the old package or the new one, and nothing that stays.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anemone_package::proto::mil::Program;
use anemone_package::proto::spec::{Model, ModelKind};
use anemone_package::{BlobType, Package, PackageWriter};

const DEST: &str = "ANEMONE_TEST_KILL_DEST";

fn model(version: i32) -> Model {
    let program = Program { version: 1, ..Program::default() };
    Model { specification_version: version, r#type: Some(ModelKind::MlProgram(program)), ..Model::default() }
}

/// Runs one of the `child_…` tests below as a process of its own, and waits until it says that it writes.
fn child(name: &str, dest: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", name, "--nocapture"])
        .env(DEST, dest)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    assert!(lines.any(|line| line.expect("a line").contains("writing")), "the child began to write");
    child
}

fn say_writing() {
    writeln!(std::io::stdout(), "\nwriting").and_then(|()| std::io::stdout().flush()).expect("a parent that listens");
}

/// Begins to write and waits to be killed.
#[test]
fn child_that_waits() {
    let Some(dest) = std::env::var_os(DEST) else { return };
    let mut writer = PackageWriter::create(Path::new(&dest)).expect("a writer");
    writer.add_blob(BlobType::UInt8, &[7; 1 << 20], 0).expect("a blob");
    say_writing();
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_killed_writer() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let dest = folder.path().join("m.mlpackage");
    PackageWriter::create(&dest).expect("a writer").finish(&model(8)).expect("a package");
    let mut child = child("child_that_waits", &dest);
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

/// Replaces the package again and again.
#[test]
fn child_that_replaces() {
    let Some(dest) = std::env::var_os(DEST) else { return };
    say_writing();
    let end = Instant::now() + Duration::from_secs(60);
    for version in [7, 8].into_iter().cycle().take_while(|_| Instant::now() < end) {
        let mut writer = PackageWriter::create(Path::new(&dest)).expect("a writer");
        writer.add_blob(BlobType::UInt8, &[7; 1 << 16], 0).expect("a blob");
        writer.finish(&model(version)).expect("a package");
    }
}

#[test]
fn killed_at_any_time_either_package_is_there() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let dest = folder.path().join("m.mlpackage");
    PackageWriter::create(&dest).expect("a writer").finish(&model(6)).expect("a package");
    for round in 0..25 {
        let mut child = child("child_that_replaces", &dest);
        std::thread::sleep(Duration::from_micros(round * 1370));
        child.kill().expect("a kill");
        child.wait().expect("a dead child");
        if !cfg!(any(target_os = "linux", target_vendor = "apple")) {
            // Elsewhere the next writer may have to put the old one back.
            drop(PackageWriter::create(&dest).expect("a writer"));
        }
        let found = Package::open(&dest).expect("a whole package").model().specification_version;
        assert!((6..=8).contains(&found), "{found}");
    }
    PackageWriter::create(&dest).expect("a writer").finish(&model(9)).expect("a package");
    let folders: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("one").path()).collect();
    // A kill between making a folder and its manifest leaves an empty folder, which the next writer leaves for a minute.
    let held = folders.iter().filter(|folder| fs::read_dir(folder).expect("a folder").next().is_some());
    assert_eq!(held.collect::<Vec<_>>(), [&dest]);
}
