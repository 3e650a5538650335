//! Whatever happens to a file, the session is as it was, and nothing wrong is taken.

use super::*;
use crate::testing::faulty::Faulty;

#[test]
fn every_flipped_bit_is_seen() {
    let (mut session, _) = talk();
    let (_folder, path) = folder();
    session.snapshot(&path).unwrap();
    let written = fs::read(&path).unwrap();
    let before = (session.transcript().to_vec(), session.position());
    for at in 0..written.len() {
        let mut bytes = written.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, &bytes).unwrap();
        let error = session.restore(&path).expect_err("a flipped bit was taken");
        assert!(matches!(error, Error::Snapshot { .. }), "byte {at}: {error}");
        assert_eq!((session.transcript().to_vec(), session.position()), before, "byte {at}");
    }
    fs::write(&path, &written).unwrap();
    session.restore(&path).unwrap();
}

#[test]
fn every_other_length_is_seen() {
    let (mut session, _) = talk();
    let (_folder, path) = folder();
    session.snapshot(&path).unwrap();
    let written = fs::read(&path).unwrap();
    for length in 0..written.len() {
        fs::write(&path, &written[..length]).unwrap();
        let error = reason(session.restore(&path).expect_err("a part was taken"));
        assert!(matches!(error, SnapshotError::Length { found, .. } if found == length as u64), "{length}: {error}");
    }
    fs::write(&path, [&written[..], &[0]].concat()).unwrap();
    assert!(matches!(reason(session.restore(&path).unwrap_err()), SnapshotError::Length { .. }));
    fs::write(&path, b"something else altogether").unwrap();
    assert!(matches!(reason(session.restore(&path).unwrap_err()), SnapshotError::NotASnapshot));
}

#[test]
fn whatever_fails_while_writing_there_is_the_old_or_the_new_file() {
    let (mut session, model) = talk();
    let (folder, path) = folder();
    session.snapshot(&path).unwrap();
    let old = fs::read(&path).unwrap();
    say(&mut session, "more");
    let new_path = folder.path().join("new");
    session.snapshot(&new_path).unwrap();
    let new = fs::read(&new_path).unwrap();
    fs::remove_file(&new_path).unwrap();
    let write = |disk: &Faulty| {
        fs::write(&path, &old).unwrap();
        session.snapshot_on(disk, &path)
    };
    let count = Faulty::never();
    write(&count).unwrap();
    let operations = count.operations();
    assert!(operations >= 6, "{operations}");
    for crash in [false, true] {
        for at in 0..operations {
            let disk = Faulty::at(at, crash);
            let error = reason(write(&disk).expect_err("the fault was not seen"));
            assert!(matches!(error, SnapshotError::Io { what: "written", .. }), "{error}");
            let found = fs::read(&path).unwrap();
            assert!(found == old || found == new, "operation {at}");
            // Only a crash leaves something behind.
            let names = fs::read_dir(folder.path()).unwrap().count();
            assert!(names == 1 || crash, "operation {at}");
            assert!(Session::new(Arc::clone(&model)).unwrap().restore(&path).is_ok());
            fs::read_dir(folder.path()).unwrap().flatten().filter(|e| e.path() != path).for_each(|e| {
                fs::remove_file(e.path()).unwrap();
            });
        }
    }
}
