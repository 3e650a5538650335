//! Running the binary.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anemone_cli::values::Values;
use serde_json::json;
use tempfile::TempDir;

/// A run of the binary: arguments, with a home folder of its own and no network.
pub(crate) struct Run {
    command: Command,
    stdin: Vec<u8>,
    _home: Option<TempDir>,
}

/// What came of it.
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Longer than any run here takes, even on a machine with much else to do.
const LIMIT: Duration = Duration::from_secs(300);

/// Waits for a process; its exit code. One that does not end fails the test instead of stopping it.
#[cfg(unix)]
pub(crate) fn ended(child: &mut std::process::Child) -> Option<i32> {
    let end = std::time::Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if std::time::Instant::now() > end {
            child.kill().unwrap();
            panic!("still running after {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// `anemone` with these arguments.
pub(crate) fn anemone<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_anemone"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["ANEMONE_LOG", "NO_COLOR", "HF_TOKEN", "HF_HUB_CACHE", "HF_TOKEN_PATH"] {
        command.env_remove(name);
    }
    command.env("ANEMONE_HOME", home.path()).env("HF_HOME", home.path()).env("HF_ENDPOINT", "http://127.0.0.1:1");
    Run { command, stdin: Vec::new(), _home: Some(home) }
}

impl Run {
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    pub(crate) fn run(mut self) -> Done {
        self.command.stdin(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let stdin = std::mem::take(&mut self.stdin);
        // The program may end without reading it all.
        let feeder = std::thread::spawn(move || drop(pipe.write_all(&stdin)));
        let (sender, output) = channel();
        let id = child.id().to_string();
        std::thread::spawn(move || drop(sender.send(child.wait_with_output())));
        let Output { status, stdout, stderr } = match output.recv_timeout(LIMIT) {
            Ok(output) => output.unwrap(),
            Err(RecvTimeoutError::Disconnected) => unreachable!("the thread sends what it got"),
            Err(RecvTimeoutError::Timeout) => {
                drop(Command::new("kill").args(["-KILL", &id]).status());
                panic!("still running after {LIMIT:?}");
            }
        };
        feeder.join().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let done = Done { code: status.code(), out: text(stdout), err: text(stderr) };
        assert!(!done.err.contains("panicked"), "{}", done.err);
        assert!(!done.out.contains('\x1b') && !done.err.contains('\x1b'), "colours in a pipe: {:?}", done.err);
        done
    }

    /// Runs; it must go well. Its standard output.
    pub(crate) fn ok(self) -> String {
        let done = self.run();
        assert_eq!(done.code, Some(0), "{}", done.err);
        done.out
    }

    /// Runs; it must end with this code. Its standard error, which must have every one of `words`.
    pub(crate) fn fails(self, code: i32, words: &[&str]) -> String {
        let done = self.run();
        assert_eq!(done.code, Some(code), "{}{}", done.out, done.err);
        for word in words {
            assert!(done.err.contains(word), "{word:?} is not in: {}", done.err);
        }
        done.err
    }
}

/// The folder of fixtures, beside the checkout unless `ANEMONE_FIXTURES` names it.
pub(crate) fn fixtures() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    let folder = std::env::var_os("ANEMONE_FIXTURES").map_or(default, PathBuf::from);
    assert!(folder.is_dir(), "no fixtures at {}: set ANEMONE_FIXTURES to their folder", folder.display());
    folder
}

/// The package of a fixture.
pub(crate) fn package(name: &str) -> PathBuf {
    fixtures().join(name).join("model.mlpackage")
}

/// Every fixture with a package.
pub(crate) fn names() -> Vec<String> {
    let mut all: Vec<String> = std::fs::read_dir(fixtures())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| package(name).is_dir())
        .collect();
    all.sort();
    assert!(all.len() >= 26, "the fixtures are incomplete: {all:?}");
    all
}

/// The tensors of a safetensors file, owned.
pub(crate) fn tensors(path: &Path) -> BTreeMap<String, Values<'static>> {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let file = anemone_cli::tensor_file::read(&bytes).unwrap();
    let owned = |v: Values<'_>| Values { bytes: v.bytes.into_owned().into(), ..v };
    file.tensors.into_iter().map(|(name, v)| (name, owned(v))).collect()
}

/// A folder with a tiny model in it and a home for the binary.
pub(crate) struct Folder(TempDir);

impl Folder {
    /// With a checkpoint.
    pub(crate) fn with_checkpoint() -> Self {
        let folder = tempfile::tempdir().unwrap();
        tiny_checkpoint(folder.path());
        Self(folder)
    }

    /// With a checkpoint and what it was converted to, for a context of 256.
    pub(crate) fn with_model() -> Self {
        Self::with_context("256")
    }

    /// With a checkpoint and what it was converted to.
    pub(crate) fn with_context(context: &str) -> Self {
        let folder = Self::with_checkpoint();
        folder
            .anemone(["convert", &folder.checkpoint(), "-o", &folder.model(), "--context", context, "--prefill", "8"])
            .ok();
        folder
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn checkpoint(&self) -> String {
        self.at("tiny-checkpoint")
    }

    pub(crate) fn model(&self) -> String {
        self.at("tiny")
    }

    pub(crate) fn home(&self) -> String {
        self.at("home")
    }

    /// The binary, at home here.
    pub(crate) fn anemone<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Run {
        anemone(arguments).env("ANEMONE_HOME", self.home())
    }
}

/// A checkpoint in `folder` that can be chatted with, though it has nothing to say: the tiny model of the fixtures, with a
/// tokenizer whose tokens are bytes.
pub(crate) fn tiny_checkpoint(folder: &Path) -> PathBuf {
    let path = folder.join("tiny-checkpoint");
    std::fs::create_dir_all(&path).unwrap();
    for file in ["config.json", "generation_config.json", "model.safetensors"] {
        // Written, not copied: the fixtures are read-only.
        std::fs::write(path.join(file), std::fs::read(fixtures().join("tiny_article_hf").join(file)).unwrap()).unwrap();
    }
    let config = path.join("config.json");
    let mut settings: serde_json::Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    settings["max_position_embeddings"] = json!(8192);
    std::fs::write(config, settings.to_string()).unwrap();
    tiny_tokenizer(&path);
    path
}

/// A tokenizer for the tiny models of the fixtures: its 256 tokens are the bytes.
pub(crate) fn tiny_tokenizer(folder: &Path) {
    // Bytes that are no printable characters are shown by characters from 256 on, in order.
    let printable = |b: u32| matches!(b, 33..=126 | 161..=172 | 174..=255);
    let mut other = 256..;
    let vocabulary: serde_json::Map<String, serde_json::Value> = (0..256u32)
        .map(|b| if printable(b) { b } else { other.next().unwrap() })
        .map(|c| char::from_u32(c).unwrap().to_string())
        .zip((0..256).map(serde_json::Value::from))
        .collect();
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    let tokenizer = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": byte_level,
        "post_processor": null,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    });
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let template = "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}\n{% endfor %}\
                    {% if add_generation_prompt %}a:{% endif %}";
    let settings = json!({"chat_template": template});
    std::fs::write(folder.join("tokenizer_config.json"), settings.to_string()).unwrap();
}
