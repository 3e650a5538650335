use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::super::testing::{Notes, Reply, Request, Server};
use super::*;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn weights() -> Vec<u8> {
    vec![42; 50_000]
}

/// A server of one repository, in the way of Hugging Face: a listing, and files behind a redirect.
fn repository(files: &[(&str, Vec<u8>)]) -> impl Fn(&Request) -> Reply + Send + 'static {
    let files: Arc<BTreeMap<String, Vec<u8>>> =
        Arc::new(files.iter().map(|(name, body)| ((*name).to_owned(), body.clone())).collect());
    move |request| {
        if request.path == "/api/models/owner/name/revision/main?blobs=true" {
            let siblings = files.iter().map(|(name, body)| {
                let git = hex(&Sha1::new_with_prefix(format!("blob {}\0", body.len())).chain_update(body).finalize());
                let lfs = json!({"sha256": hex(&Sha256::digest(body)), "size": body.len()});
                let mut entry = json!({"rfilename": name, "size": body.len(), "blobId": git});
                if name.ends_with(".safetensors") {
                    entry["lfs"] = lfs;
                }
                entry
            });
            let answer = json!({"sha": COMMIT, "siblings": siblings.collect::<Vec<_>>()});
            return Reply { status: 200, body: answer.to_string().into_bytes(), ..Reply::default() };
        }
        if let Some(name) = request.path.strip_prefix(&format!("/owner/name/resolve/{COMMIT}/")) {
            return Reply::redirect(&format!("/cdn/{name}"));
        }
        match request.path.strip_prefix("/cdn/").and_then(|name| files.get(name)) {
            Some(body) => Reply::file(body, request),
            None => Reply::status(404),
        }
    }
}

fn checkpoint() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("README.md", b"not wanted".to_vec()),
        ("config.json", b"{}".to_vec()),
        ("model.safetensors", weights()),
        ("tokenizer.json", br#"{"a":1}"#.to_vec()),
    ]
}

fn hub(folder: &TempDir, endpoint: &str) -> Hub {
    let cache = folder.path().join("hub");
    Hub { cache, endpoint: endpoint.to_owned(), token: None, offline: false, pause: Duration::ZERO }
}

fn id() -> Id {
    Id::parse("hf:owner/name").unwrap().unwrap()
}

#[test]
fn a_download_fills_the_standard_layout_and_is_found_again_without_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(repository(&checkpoint()));
    let hub = hub(&folder, &server.url);
    assert_eq!(hub.cached(&id()), None);
    let got = hub.download(&id(), &Notes::default()).unwrap();
    let root = folder.path().join("hub/models--owner--name");
    assert_eq!(got.path, root.join("snapshots").join(COMMIT));
    assert_eq!(got.digest, format!("git:{COMMIT}"));
    assert_eq!(fs::read_to_string(root.join("refs/main")).unwrap(), COMMIT);
    assert_eq!(fs::read(got.path.join("model.safetensors")).unwrap(), weights());
    assert!(!got.path.join("README.md").exists());
    let mut blobs: Vec<_> = fs::read_dir(root.join("blobs")).unwrap().map(|e| e.unwrap().file_name()).collect();
    blobs.sort();
    assert_eq!(blobs.len(), 3, "{blobs:?}");
    assert!(blobs.contains(&hex(&Sha256::digest(weights())).into()), "named by etag: {blobs:?}");
    #[cfg(unix)]
    assert!(fs::read_link(got.path.join("config.json")).unwrap().starts_with("../../blobs"));

    let asked = server.seen().len();
    assert_eq!(hub.cached(&id()).unwrap().path, got.path);
    assert_eq!(server.seen().len(), asked);
}

#[test]
fn a_second_download_fetches_no_blob_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(repository(&checkpoint()));
    let hub = hub(&folder, &server.url);
    hub.download(&id(), &Notes::default()).unwrap();
    let asked = server.seen().len();
    hub.download(&id(), &Notes::default()).unwrap();
    assert_eq!(server.seen().len(), asked + 1, "only the listing");
}

#[test]
fn the_incomplete_file_of_another_tool_is_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(repository(&checkpoint()));
    let blobs = folder.path().join("hub/models--owner--name/blobs");
    fs::create_dir_all(&blobs).unwrap();
    let etag = hex(&Sha256::digest(weights()));
    fs::write(blobs.join(format!("{etag}.incomplete")), &weights()[..30_000]).unwrap();
    hub(&folder, &server.url).download(&id(), &Notes::default()).unwrap();
    let ranges: Vec<_> = server.seen().iter().filter(|r| r.path == "/cdn/model.safetensors").map(|r| r.from).collect();
    assert_eq!(ranges, [Some(30_000)]);
}

#[test]
fn what_is_not_complete_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(repository(&checkpoint()));
    let hub = hub(&folder, &server.url);
    let got = hub.download(&id(), &Notes::default()).unwrap();
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        let file = got.path.join(name);
        let aside = got.path.join("aside");
        fs::rename(&file, &aside).unwrap();
        assert_eq!(hub.cached(&id()), None, "without {name}");
        fs::rename(&aside, &file).unwrap();
    }
    fs::write(got.path.join("model.safetensors.index.json"), r#"{"weight_map": {"a": "model-1.safetensors"}}"#)
        .unwrap();
    assert_eq!(hub.cached(&id()), None, "a shard is missing");
    fs::write(got.path.join("model-1.safetensors"), b"").unwrap();
    assert!(hub.cached(&id()).is_some());
    // A link whose blob is gone.
    #[cfg(unix)]
    {
        fs::remove_dir_all(folder.path().join("hub/models--owner--name/blobs")).unwrap();
        assert_eq!(hub.cached(&id()), None, "dangling links");
    }
}

#[test]
fn a_damaged_file_leaves_no_snapshot_that_looks_complete() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start({
        let good = repository(&checkpoint());
        move |request: &Request| match request.path.as_str() {
            "/cdn/model.safetensors" => Reply::file(&vec![41; 50_000], request),
            _ => good(request),
        }
    });
    let hub = hub(&folder, &server.url);
    let error = format!("{:#}", hub.download(&id(), &Notes::default()).unwrap_err());
    assert!(error.contains("damaged"), "{error}");
    assert_eq!(hub.cached(&id()), None);
}

#[test]
fn a_listing_that_leads_out_of_the_cache_is_refused() {
    for answer in [
        json!({"sha": "../../..", "siblings": []}),
        json!({"sha": "0".repeat(64), "siblings": []}),
        json!({"siblings": []}),
        json!("x"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let body = answer.to_string().into_bytes();
        let server = Server::start(move |_| Reply { status: 200, body: body.clone(), ..Reply::default() });
        hub(&folder, &server.url).download(&id(), &Notes::default()).unwrap_err();
        assert!(!folder.path().join("hub").exists(), "{answer}");
    }
}

#[test]
fn offline_asks_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(|_| Reply::status(500));
    let hub = Hub { offline: true, ..hub(&folder, &server.url) };
    let error = hub.download(&id(), &Notes::default()).unwrap_err().to_string();
    assert!(error.contains("HF_HUB_OFFLINE"), "{error}");
    assert_eq!(server.seen(), []);
}

#[test]
fn one_file_of_a_repository() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(repository(&[("m.Q8_0.gguf", weights()), ("m.Q4_0.gguf", vec![1])]));
    let hub = hub(&folder, &server.url);
    let id = Id::parse("hf:owner/name/m.Q8_0.gguf").unwrap().unwrap();
    let got = hub.download(&id, &Notes::default()).unwrap();
    assert_eq!(fs::read(&got.path).unwrap(), weights());
    assert!(!got.path.with_file_name("m.Q4_0.gguf").exists());
    assert_eq!(hub.cached(&id).unwrap().path, got.path);
}

#[test]
fn two_at_once_download_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(repository(&checkpoint()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| hub(&folder, &server.url).download(&id(), &Notes::default()).unwrap());
        }
    });
    let fetched = server.seen().iter().filter(|request| request.path == "/cdn/model.safetensors").count();
    assert_eq!(fetched, 1);
}

#[test]
fn ids_are_read_and_printed() {
    for text in ["hf:a/b", "hf:HuggingFaceTB/SmolLM2-135M-Instruct", "hf:a/b@v1.0", "hf:a/b/c.Q4_0.gguf@0123abc"] {
        assert_eq!(Id::parse(text).unwrap().unwrap().to_string(), text);
    }
    assert_eq!(Id::parse("a/b").unwrap(), None);
    assert_eq!(Id::parse("smollm2").unwrap(), None);
    for text in [
        "hf:",
        "hf:a",
        "hf:a/",
        "hf:/b",
        "hf:a/..",
        "hf:a/b/c",
        "hf:a/b/c/d.gguf",
        "hf:a/b@",
        "hf:a/b@../x",
        "hf:a/b c",
    ] {
        assert!(Id::parse(text).is_err(), "{text}");
    }
}

#[test]
fn the_variables_of_hugging_faces_tools_are_honoured() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let from = |pairs: &[(&str, &str)]| {
        Hub::from_env(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value)))
            .unwrap()
    };
    let user = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    let plain = from(&[(user, home)]);
    assert_eq!(plain.cache, folder.path().join(".cache/huggingface/hub"));
    assert_eq!(plain.endpoint, "https://huggingface.co");
    assert_eq!((plain.token.as_deref(), plain.offline), (None, false));
    fs::write(folder.path().join("token"), "from file\n").unwrap();
    let set = from(&[("HF_HOME", home), ("HF_ENDPOINT", "http://mirror/"), ("HF_HUB_OFFLINE", "1")]);
    assert_eq!(set.cache, folder.path().join("hub"));
    assert_eq!((set.endpoint.as_str(), set.token.as_deref(), set.offline), ("http://mirror", Some("from file"), true));
    let set = from(&[("HF_HOME", home), ("HF_HUB_CACHE", "/c"), ("HF_TOKEN", "t"), ("HF_HUB_OFFLINE", "0")]);
    assert_eq!((set.cache.as_path(), set.token.as_deref(), set.offline), (Path::new("/c"), Some("t"), false));
}
