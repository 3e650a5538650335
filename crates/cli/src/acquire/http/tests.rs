use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::super::testing::{Notes, Reply, Request, Server};
use super::*;

/// Three megabytes that no shift or repetition of equals.
fn content() -> Vec<u8> {
    (0..3_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

struct Case {
    folder: TempDir,
    server: Server,
    digest: Digest,
    notes: Notes,
}

impl Case {
    fn new(answer: impl Fn(&Request) -> Reply + Send + 'static) -> Case {
        let sha: String = Sha256::digest(content()).iter().map(|byte| format!("{byte:02x}")).collect();
        let digest = Digest::parse(&sha).unwrap();
        Case { folder: tempfile::tempdir().unwrap(), server: Server::start(answer), digest, notes: Notes::default() }
    }

    fn partial(&self) -> PathBuf {
        self.folder.path().join("file.incomplete")
    }

    fn run(&self) -> Result<()> {
        let url = format!("{}/file", self.server.url);
        let remote = Remote { url: &url, name: "file", size: content().len() as u64, digest: &self.digest };
        Client::new(None, false, Duration::ZERO).download(&remote, &self.partial(), &self.notes)
    }

    /// Runs, and the file must be whole afterwards.
    fn must_succeed(&self) -> Vec<Option<usize>> {
        self.run().unwrap();
        assert!(fs::read(self.partial()).unwrap() == content());
        self.server.seen().iter().map(|request| request.from).collect()
    }

    fn must_fail(&self) -> String {
        format!("{:#}", self.run().unwrap_err())
    }
}

#[test]
fn a_whole_file_arrives() {
    let case = Case::new(|request| Reply::file(&content(), request));
    assert_eq!(case.must_succeed(), [None]);
}

#[test]
fn redirects_are_followed_with_the_range() {
    let case = Case::new(|request| match request.path.as_str() {
        "/file" => Reply::redirect("/elsewhere"),
        _ => Reply::file(&content(), request),
    });
    fs::write(case.partial(), &content()[..1000]).unwrap();
    assert_eq!(case.must_succeed(), [Some(1000), Some(1000)]);
}

#[test]
fn a_redirect_without_end_is_no_endless_loop() {
    let case = Case::new(|_| Reply::redirect("/file"));
    case.must_fail();
    assert!(case.server.seen().len() < 100);
}

#[test]
fn a_broken_transfer_goes_on_where_it_ended() {
    let count = AtomicUsize::new(0);
    let case = Case::new(move |request| match count.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::file(&content(), request).cut(1_200_000),
        _ => Reply::file(&content(), request),
    });
    assert_eq!(case.must_succeed(), [None, Some(1_200_000)]);
    assert!(case.notes.text().contains("trying again after 1.2 MB"), "{}", case.notes.text());
}

#[test]
fn what_an_earlier_process_left_is_taken_up() {
    let case = Case::new(|request| Reply::file(&content(), request));
    fs::write(case.partial(), &content()[..2_000_000]).unwrap();
    assert_eq!(case.must_succeed(), [Some(2_000_000)]);
}

#[test]
fn a_partial_file_that_is_already_whole_asks_nobody() {
    let case = Case::new(|_| Reply::status(500));
    fs::write(case.partial(), content()).unwrap();
    assert_eq!(case.must_succeed(), []);
}

#[test]
fn a_server_that_ignores_the_range_starts_over() {
    let case = Case::new(|request| Reply::file(&content(), &Request { from: None, ..request.clone() }));
    fs::write(case.partial(), &content()[..1234]).unwrap();
    assert_eq!(case.must_succeed(), [Some(1234)]);
}

#[test]
fn a_wrong_left_over_is_thrown_away_and_fetched_anew() {
    let case = Case::new(|request| Reply::file(&content(), request));
    fs::write(case.partial(), [7; 5000]).unwrap();
    assert_eq!(case.must_succeed(), [Some(5000), None]);
}

#[test]
fn a_left_over_that_is_too_long_is_thrown_away() {
    let case = Case::new(|request| Reply::file(&content(), request));
    fs::write(case.partial(), vec![0; 3_000_001]).unwrap();
    assert_eq!(case.must_succeed(), [None]);
}

#[test]
fn a_wrong_hash_is_an_error_and_nothing_stays() {
    let case = Case::new(|request| {
        let mut wrong = content();
        wrong[99] ^= 1;
        Reply::file(&wrong, request)
    });
    let error = case.must_fail();
    assert!(error.contains("damaged") && error.contains(case.digest.hex()), "{error}");
    assert!(!case.partial().exists());
}

#[test]
fn a_server_that_always_breaks_off_is_given_up_and_what_came_is_kept() {
    let case = Case::new(|request| Reply::file(&content(), request).cut(1000));
    let error = case.must_fail();
    assert!(error.contains("after 4.0 kB of 3.0 MB"), "{error}");
    assert_eq!(fs::read(case.partial()).unwrap(), &content()[..4000]);
    assert_eq!(case.server.seen().len(), 4);
}

#[test]
fn a_short_file_that_looks_whole_is_not_believed() {
    let case = Case::new(|request| Reply::file(&content()[..2_999_999], request));
    case.must_fail();
}

#[test]
fn a_file_that_is_longer_than_announced_is_refused() {
    let case = Case::new(|request| {
        let mut long = content();
        long.push(0);
        Reply::file(&long, request)
    });
    assert!(case.must_fail().contains("more than the 3000000 bytes"));
}

#[test]
fn another_range_than_asked_is_refused() {
    let case = Case::new(|_| {
        let headers = vec!["Content-Range: bytes 0-9/3000000".into()];
        Reply { status: 206, headers, body: content(), announced: None }
    });
    fs::write(case.partial(), &content()[..1000]).unwrap();
    assert!(case.must_fail().contains("another range"));
}

#[test]
fn refusals_say_what_helps_and_are_not_repeated() {
    for (status, word) in [(401, "HF_TOKEN"), (403, "gated"), (404, "does not exist"), (451, "cannot be had")] {
        let case = Case::new(move |_| Reply::status(status));
        let error = case.must_fail();
        assert!(error.contains(word) && error.contains(&status.to_string()), "{error}");
        assert_eq!(case.server.seen().len(), 1);
    }
}

#[test]
fn a_busy_server_is_asked_again() {
    let count = AtomicUsize::new(0);
    let case = Case::new(move |request| match count.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::status(503),
        1 => Reply::status(429),
        _ => Reply::file(&content(), request),
    });
    assert_eq!(case.must_succeed(), [None, None, None]);
}

#[test]
fn an_interruption_keeps_what_has_arrived_and_the_next_run_goes_on() {
    let mut case = Case::new(|request| Reply::file(&content(), request));
    case.notes = Notes::stop_at(1_000_000);
    assert!(case.must_fail().contains("interrupted"));
    let kept = fs::metadata(case.partial()).unwrap().len();
    assert!((1_000_000..3_000_000).contains(&kept), "{kept}");
    case.notes = Notes::default();
    assert_eq!(case.must_succeed(), [None, Some(kept as usize)]);
}

#[test]
fn the_token_goes_to_the_host_and_not_to_where_it_redirects() {
    let other = Server::start(|_| Reply { status: 200, body: b"{}".to_vec(), ..Reply::default() });
    // Another host for a client: `localhost` instead of 127.0.0.1.
    let target = other.url.replace("127.0.0.1", "localhost");
    let first = Server::start(move |_| Reply::redirect(&target));
    let client = Client::new(Some("secret".into()), false, Duration::ZERO);
    client.json(&first.url).unwrap();
    assert_eq!(first.seen()[0].authorization.as_deref(), Some("Bearer secret"));
    assert_eq!(other.seen()[0].authorization, None);
}

#[test]
fn answers_that_are_no_json_or_too_long_are_errors() {
    let body = |body: Vec<u8>| Server::start(move |_| Reply { status: 200, body: body.clone(), ..Reply::default() });
    let client = Client::new(None, false, Duration::ZERO);
    let error = client.json(&body(b"<html>".to_vec()).url).unwrap_err().to_string();
    assert!(error.contains("not JSON"), "{error}");
    client.json(&body(vec![b' '; JSON_LIMIT as usize + 1]).url).unwrap_err();
    let error = client.json("http://127.0.0.1:1/x").unwrap_err();
    assert!(format!("{error:#}").contains("cannot reach"), "{error:#}");
}
