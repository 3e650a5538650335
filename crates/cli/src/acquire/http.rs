//! HTTP as an acquisition needs it: small JSON answers, and big files that resume where a broken transfer ended.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use ureq::config::RedirectAuthHeaders;
use ureq::http::{Response, header};
use ureq::{Agent, Body};

use super::Progress;
use super::digest::{Digest, Hasher, feed};
use crate::{causes, units};

/// An answer that is no file may have at most this many bytes.
const JSON_LIMIT: u64 = 16 << 20;

/// A client of one host (and of those it redirects to), with the patience of a person who waits at a prompt.
pub struct Client {
    agent: Agent,
    token: Option<String>,
    /// Pause before the first new attempt; the n-th takes n times as long.
    pause: Duration,
}

/// One file to fetch.
pub struct Remote<'a> {
    /// Where it is.
    pub url: &'a str,
    /// What the user calls it.
    pub name: &'a str,
    /// Its exact size in bytes.
    pub size: u64,
    /// What its content must hash to.
    pub digest: &'a Digest,
}

/// How one attempt ended, short of success.
enum Broken {
    /// Worth another attempt from where this one ended.
    Transfer(anyhow::Error),
    /// No attempt will fare better.
    Final(anyhow::Error),
}

impl From<std::io::Error> for Broken {
    /// Errors of the local disk: those of the network are told apart where they arise.
    fn from(error: std::io::Error) -> Self {
        Broken::Final(error.into())
    }
}

impl Client {
    /// A client; `token` is sent to the host that is asked, and to no host that it redirects to.
    pub fn new(token: Option<String>, secure: bool, pause: Duration) -> Client {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .https_only(secure)
            .user_agent(concat!("anemone/", env!("CARGO_PKG_VERSION")))
            .redirect_auth_headers(RedirectAuthHeaders::SameHost)
            .timeout_resolve(Some(Duration::from_secs(5)))
            .timeout_connect(Some(Duration::from_secs(5)))
            .timeout_recv_response(Some(Duration::from_secs(20)))
            .timeout_per_read(Some(Duration::from_secs(30)))
            .build()
            .new_agent();
        Client { agent, token, pause }
    }

    fn get(&self, url: &str, from: u64) -> Result<Response<Body>, ureq::Error> {
        let mut request = self.agent.get(url);
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if from > 0 {
            request = request.header(header::RANGE, format!("bytes={from}-"));
        }
        request.call()
    }

    /// Fetches a JSON document.
    pub fn json(&self, url: &str) -> Result<serde_json::Value> {
        let mut response = self.get(url, 0).with_context(|| format!("cannot reach {url}"))?;
        let status = response.status().as_u16();
        if status != 200 {
            bail!(refusal(status, url, self.token.is_some()));
        }
        let body = response.body_mut().with_config().limit(JSON_LIMIT).read_to_vec();
        let body = body.with_context(|| format!("the answer of {url} broke off"))?;
        serde_json::from_slice(&body).with_context(|| format!("the answer of {url} is not JSON"))
    }

    /// Fetches a file into `partial`, beginning with the bytes that it has already, and returns once it is complete,
    /// verified and synced. A transfer that breaks off is taken up again, a few times in a row without progress at
    /// most. `partial` stays when the network fails, and goes when its content turns out wrong.
    pub fn download(&self, remote: &Remote<'_>, partial: &Path, progress: &dyn Progress) -> Result<()> {
        const TRIES: u32 = 4;
        const WORTH: u64 = 1 << 20;
        let file = File::options().create(true).truncate(false).read(true).write(true).open(partial);
        let mut file = file.with_context(|| format!("cannot write {}", partial.display()))?;
        let mut have = file.metadata()?.len();
        if have > remote.size {
            file.set_len(0)?;
            have = 0;
        }
        let resumed = have > 0;
        let mut hasher = remote.digest.hasher(remote.size);
        feed(&mut hasher, &file, &super::progress::Quiet(progress), 0)?;

        progress.begin(remote.name, Some(remote.size), have);
        let mut failures = 0;
        // Progress is what goes beyond the furthest yet: otherwise a server that keeps starting over would never end.
        let mut furthest = have;
        while have < remote.size {
            match self.attempt(remote, &mut file, &mut hasher, &mut have, progress) {
                Ok(()) => break,
                Err(Broken::Final(error)) => {
                    progress.end();
                    return Err(error);
                }
                Err(Broken::Transfer(error)) => {
                    failures = if have >= furthest + WORTH { 1 } else { failures + 1 };
                    furthest = furthest.max(have);
                    if failures >= TRIES {
                        progress.end();
                        let kept = format!(
                            "after {} of {}, which are kept for the next try",
                            units::bytes(have),
                            units::bytes(remote.size)
                        );
                        return Err(error.context(format!("the download of {} broke off {kept}", remote.name)));
                    }
                    progress.note(&format!("  {}; trying again after {}", causes::told(&error), units::bytes(have)));
                    sleep(self.pause * failures);
                }
            }
        }
        progress.end();
        file.sync_all()?;
        if let Err(error) = hasher.verify(remote.digest) {
            fs::remove_file(partial)?;
            if resumed {
                progress.note(&format!(
                    "  what was left of an earlier download of {} is wrong; starting anew",
                    remote.name
                ));
                return self.download(remote, partial, progress);
            }
            return Err(error.context(format!("{} arrived damaged", remote.url)));
        }
        Ok(())
    }

    /// One request, copied until it ends; `have` and `hasher` say how far the file has come.
    fn attempt(
        &self,
        remote: &Remote<'_>,
        file: &mut File,
        hasher: &mut Hasher,
        have: &mut u64,
        progress: &dyn Progress,
    ) -> Result<(), Broken> {
        let mut response = match self.get(remote.url, *have) {
            Ok(response) => response,
            Err(error) => return Err(Broken::Transfer(anyhow!("cannot reach {}: {error}", remote.url))),
        };
        match response.status().as_u16() {
            // The server does not resume: from the beginning again.
            200 if *have > 0 => *have = 0,
            200 => {}
            206 if begins_at(&response, *have) => {}
            206 => return Err(Broken::Final(anyhow!("{} answers with another range than the one asked", remote.url))),
            416 => *have = 0,
            status @ (408 | 429 | 500..=599) => {
                return Err(Broken::Transfer(anyhow!("{} answers with status {status}", remote.url)));
            }
            status => return Err(Broken::Final(anyhow!(refusal(status, remote.url, self.token.is_some())))),
        }
        file.set_len(*have)?;
        file.seek(SeekFrom::Start(*have))?;
        if *have == 0 {
            *hasher = remote.digest.hasher(remote.size);
        }
        if response.status() == 416 {
            return Err(Broken::Transfer(anyhow!("{} has no byte at the place asked for", remote.url)));
        }
        let mut body = response.body_mut().as_reader();
        let mut buffer = vec![0; 128 * 1024];
        loop {
            if progress.stop() {
                return Err(Broken::Final(anyhow!("interrupted at byte {have}; what has arrived is kept")));
            }
            let count = match body.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Broken::Transfer(anyhow!("{}: {error}", remote.url))),
            };
            if count == 0 && *have == remote.size {
                return Ok(());
            }
            if count == 0 {
                return Err(Broken::Transfer(anyhow!("{} ended at byte {have} of {}", remote.url, remote.size)));
            }
            if *have + count as u64 > remote.size {
                file.set_len(0)?;
                return Err(Broken::Final(anyhow!(
                    "{} gives more than the {} bytes announced",
                    remote.url,
                    remote.size
                )));
            }
            file.write_all(&buffer[..count])?;
            hasher.update(&buffer[..count]);
            *have += count as u64;
            progress.at(*have);
        }
    }
}

fn begins_at(response: &Response<Body>, from: u64) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {from}-")))
}

/// What a status means to the user, and what helps.
fn refusal(status: u16, url: &str, with_token: bool) -> String {
    let meaning = match (status, with_token) {
        (401, false) => "does not exist or is private: set HF_TOKEN to an access token if it is yours",
        (401, true) => "does not exist, or the token in use (HF_TOKEN) is not accepted",
        (403, _) => "is gated: accept its terms on its web page, and set HF_TOKEN to a token of that account",
        (404, _) => "does not exist",
        _ => "cannot be had",
    };
    format!("{url} {meaning} (status {status})")
}

#[cfg(test)]
mod tests;
