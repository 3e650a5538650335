//! What the tests of this module share: progress that remembers, and a small HTTP server on this machine.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::Progress;

/// Remembers all notes.
#[derive(Default)]
pub(crate) struct Notes {
    lines: Mutex<Vec<String>>,
    stopped: AtomicBool,
    stop_at: Option<u64>,
}

impl Notes {
    /// Asks to stop from the beginning.
    pub(crate) fn stopped() -> Notes {
        Notes { stopped: AtomicBool::new(true), ..Notes::default() }
    }

    /// Asks to stop once a transfer has come this far.
    pub(crate) fn stop_at(bytes: u64) -> Notes {
        Notes { stop_at: Some(bytes), ..Notes::default() }
    }

    pub(crate) fn text(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }
}

impl Progress for Notes {
    fn note(&self, line: &str) {
        self.lines.lock().unwrap().push(line.to_owned());
    }
    fn begin(&self, _: &str, _: Option<u64>, _: u64) {}
    fn at(&self, done: u64) {
        if self.stop_at.is_some_and(|limit| done >= limit) {
            self.stopped.store(true, Ordering::Relaxed);
        }
    }
    fn end(&self) {}
    fn stop(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// What a client asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// From `Range: bytes=N-`.
    pub(crate) from: Option<usize>,
    pub(crate) authorization: Option<String>,
}

/// What the server answers; `announced` is the Content-Length if it is to lie.
#[derive(Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<String>,
    pub(crate) body: Vec<u8>,
    pub(crate) announced: Option<usize>,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Reply {
        Reply { status, ..Reply::default() }
    }

    pub(crate) fn redirect(to: &str) -> Reply {
        Reply { status: 302, headers: vec![format!("Location: {to}")], ..Reply::default() }
    }

    /// A whole file, or its rest if a range is asked.
    pub(crate) fn file(content: &[u8], request: &Request) -> Reply {
        match request.from {
            None => Reply { status: 200, body: content.to_vec(), ..Reply::default() },
            Some(from) if from >= content.len() => Reply::status(416),
            Some(from) => {
                let range = format!("Content-Range: bytes {from}-{}/{}", content.len() - 1, content.len());
                Reply { status: 206, headers: vec![range], body: content[from..].to_vec(), announced: None }
            }
        }
    }

    /// The same answer, cut off after `bytes` of its body although more are announced.
    pub(crate) fn cut(mut self, bytes: usize) -> Reply {
        self.announced = Some(self.body.len());
        self.body.truncate(bytes);
        self
    }
}

/// Serves until dropped, one connection after another, one request each.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Request>>>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(answer: impl Fn(&Request) -> Reply + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (seen, end) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let (seen, end) = (seen.clone(), end.clone());
            move || {
                for stream in listener.incoming() {
                    if end.load(Ordering::Relaxed) {
                        break;
                    }
                    let _ = serve(stream.unwrap(), &answer, &seen);
                }
            }
        });
        Server { url, seen, end, thread: Some(thread) }
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: TcpStream,
    answer: &impl Fn(&Request) -> Reply,
    seen: &Mutex<Vec<Request>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let Some(first) = lines.next().transpose()? else { return Ok(()) };
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut request = Request { path, from: None, authorization: None };
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ").unwrap_or((&line, ""));
        match name.to_ascii_lowercase().as_str() {
            "range" => request.from = value.trim_start_matches("bytes=").trim_end_matches('-').parse().ok(),
            "authorization" => request.authorization = Some(value.to_owned()),
            _ => {}
        }
    }
    seen.lock().unwrap().push(request.clone());
    let reply = answer(&request);
    let length = reply.announced.unwrap_or(reply.body.len());
    write!(stream, "HTTP/1.1 {} X\r\nContent-Length: {length}\r\nConnection: close\r\n", reply.status)?;
    for header in &reply.headers {
        write!(stream, "{header}\r\n")?;
    }
    stream.write_all(b"\r\n")?;
    stream.write_all(&reply.body)?;
    stream.flush()
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
        let _ = self.thread.take().unwrap().join();
    }
}
