//! llama-server, and requests to it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::super::process::Background;
use super::Peer;

/// A server that runs until this is dropped.
pub(in crate::bench) struct Server {
    process: Background,
    port: u16,
}

/// How long a server may take until it answers, or for an answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// An answer of one token.
#[derive(Debug, Clone, Copy)]
pub(in crate::bench) struct Answered {
    /// From the request to the answer, in milliseconds.
    pub(in crate::bench) wall: f64,
    /// What the server says that the prompt took.
    pub(in crate::bench) prompt: f64,
    /// Tokens of the prompt that it read.
    pub(in crate::bench) read: u64,
    /// Those that it knew.
    pub(in crate::bench) known: u64,
}

impl Peer {
    /// Starts a server for one conversation and waits until it is ready.
    pub(in crate::bench) fn server(
        &self,
        gguf: &Path,
        threads: usize,
        context: usize,
        tuned: bool,
        flash: bool,
    ) -> Result<Server> {
        // The system gives a port that is free now.
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut command = self.command_as("llama-server", tuned);
        command.arg("-m").arg(gguf).args(["--host", "127.0.0.1", "--port", &port.to_string(), "-np", "1"]);
        command.args(["-t", &threads.to_string(), "-c", &context.to_string(), "-fa", if flash { "on" } else { "off" }]);
        let mut server = Server { process: Background::start(&mut command)?, port };
        let begin = Instant::now();
        while server.request("GET", "/health", "").is_err() {
            server.process.check().context("llama-server")?;
            if begin.elapsed() > PATIENCE {
                bail!("llama-server is not ready after {} s", PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

impl Server {
    /// The first token after a prompt, of which it may keep what it knows.
    pub(in crate::bench) fn answer(&self, prompt: &[u32]) -> Result<Answered> {
        let request = json!({"prompt": prompt, "n_predict": 1, "temperature": 0, "cache_prompt": true}).to_string();
        let begin = Instant::now();
        let answer = self.request("POST", "/completion", &request)?;
        let wall = begin.elapsed().as_secs_f64() * 1e3;
        let answer: Value = serde_json::from_str(&answer).context("llama-server answered no JSON")?;
        let timings = &answer["timings"];
        let number = |key: &str| timings[key].as_u64().with_context(|| format!("no {key} in {timings}"));
        let prompt = timings["prompt_ms"].as_f64().context("no prompt_ms")?;
        Ok(Answered { wall, prompt, read: number("prompt_n")?, known: number("cache_n")? })
    }

    /// The body of the answer to a request.
    fn request(&self, method: &str, path: &str, body: &str) -> Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + body).as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("llama-server answered no HTTP")?;
        if !head.lines().next().is_some_and(|status| status.contains(" 200 ")) {
            bail!("llama-server: {answer}");
        }
        Ok(body.to_owned())
    }
}
