//! Downloads from servers that may be hostile: limits silence and size, sends the token to no other host on a redirect, and resumes where a
//! download stopped.
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use ureq::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_RANGE, RANGE};
use ureq::http::{HeaderName, Response};
use ureq::{Agent, Body, config::RedirectAuthHeaders};

use words::excerpt;

use crate::Error;

/// Called during a download with the bytes so far, and the total if known.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(u64, Option<u64>);

const CONNECT: Duration = Duration::from_secs(20);
/// Maximum silence before or during a response; a whole download has no time limit.
const SILENCE: Duration = Duration::from_secs(60);
const REDIRECTS: u32 = 10;
/// Maximum bytes of a download: more than any file that this project reads.
const MAX_BYTES: u64 = 64 << 30;
/// Maximum bytes of a response held in memory.
const MAX_TEXT: u64 = 32 << 20;

/// Why a file could not be downloaded.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The server answered with this status.
    Status(u16),
    /// Message of the transport, or what is wrong with the response.
    Answer(String),
    /// The file could not be written.
    Local(Error),
}

/// HTTP client.
pub(crate) struct Client {
    agent: Agent,
    /// Value of the authorisation header, which is sent to the requested host but to no other on a redirect.
    token: Option<String>,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self::with_silence(SILENCE)
    }

    fn with_silence(silence: Duration) -> Self {
        // Without "identity" a server may compress what it sends, and ranges would count compressed bytes.
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .accept_encoding("identity")
            .max_redirects(REDIRECTS)
            .redirect_auth_headers(RedirectAuthHeaders::SameHost)
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(silence))
            .timeout_per_read(Some(silence))
            .build();
        Self { agent: agent.into(), token: None }
    }

    /// Sets the token for the requested server.
    pub(crate) fn with_token(self, token: Option<&str>) -> Self {
        Self { token: token.map(|token| format!("Bearer {token}")), ..self }
    }

    pub(crate) fn text(&self, address: &str) -> Result<String, Fault> {
        let mut answer = self.ask(address, 0)?;
        if !answer.status().is_success() {
            return Err(Fault::Status(answer.status().as_u16()));
        }
        let body = answer.body_mut().with_config().limit(MAX_TEXT);
        body.read_to_string().map_err(|error| Fault::answer(&error))
    }

    /// Downloads `address` to `part`, after the bytes that `part` already contains. `size` is the size of the whole file, if known.
    pub(crate) fn resume(
        &self,
        address: &str,
        part: &Path,
        size: Option<u64>,
        progress: Progress,
    ) -> Result<(), Fault> {
        let present = part.metadata().map_or(0, |metadata| metadata.len());
        if present > 0 && size == Some(present) {
            return Ok(());
        }
        let start = if size.is_some_and(|size| present > size) { 0 } else { present };
        let mut answer = self.ask(address, start)?;
        if start > 0 && answer.status() == 416 {
            // The server has no further bytes, and `part` may be of another version: start again.
            answer = self.ask(address, 0)?;
        }
        let done = match answer.status().as_u16() {
            206 if start > 0 && starts_at(&answer, start) => start,
            200 => 0, // the server or a proxy does not support ranges and sends the whole file
            206 => return Err(Fault::Answer("the server sent a part that was not requested".to_owned())),
            status => return Err(Fault::Status(status)),
        };
        check_encoding(&answer, address)?;
        let total = total(&answer, done, size)?;
        let opened = match done {
            0 => File::create(part),
            _ => OpenOptions::new().append(true).open(part),
        };
        let file = opened.map_err(|source| local(part, source))?;
        Incoming { part, file, done, total }.receive(answer, progress)
    }

    fn ask(&self, address: &str, start: u64) -> Result<Response<Body>, Fault> {
        if !["http://", "https://"].iter().any(|scheme| address.starts_with(scheme)) {
            return Err(Fault::Answer(format!("`{}` is not an http or https address", excerpt(address))));
        }
        // Refuses redirects from https to http.
        let mut request = self.agent.get(address).config().https_only(address.starts_with("https:")).build();
        if start > 0 {
            request = request.header(RANGE, format!("bytes={start}-"));
        }
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        request.call().map_err(|error| Fault::answer(&error))
    }
}

impl Fault {
    fn answer(reason: &dyn Display) -> Self {
        Self::Answer(excerpt(&reason.to_string()))
    }

    /// Converts it to an error; `message` makes the error's message from a fault of the server or the transport.
    pub(crate) fn into_error(self, message: impl FnOnce(String) -> String) -> Error {
        Error::Invalid(message(match self {
            Self::Local(error) => return error,
            Self::Status(status) => format!("the server answered {status}"),
            Self::Answer(reason) => reason,
        }))
    }
}

struct Incoming<'a> {
    part: &'a Path,
    file: File,
    /// Bytes in the file so far.
    done: u64,
    total: Option<u64>,
}

impl Incoming<'_> {
    fn receive(mut self, answer: Response<Body>, progress: Progress) -> Result<(), Fault> {
        let most = self.total.unwrap_or(MAX_BYTES);
        let mut body = answer.into_body().into_reader();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = body.read(&mut buffer).map_err(|error| self.broke_off(&error))?;
            if count == 0 {
                break;
            }
            if count as u64 > most - self.done {
                return Err(Fault::Answer(format!("more than the expected {most} bytes")));
            }
            let written = self.file.write_all(&buffer[..count]);
            written.map_err(|source| local(self.part, source))?;
            self.done += count as u64;
            progress(self.done, self.total);
        }
        if let Some(total) = self.total.filter(|&total| self.done < total) {
            return Err(self.broke_off(&format!("of {total}")));
        }
        Ok(())
    }

    fn broke_off(&self, reason: &dyn Display) -> Fault {
        let reason = excerpt(&reason.to_string());
        Fault::Answer(format!("broke off after {} bytes ({reason}), fetch again to resume", self.done))
    }
}

fn field(answer: &Response<Body>, name: HeaderName) -> Option<&str> {
    answer.headers().get(name)?.to_str().ok()
}

/// Returns true if `Content-Range: bytes <start>-<end>/<size>` begins at `start`.
fn starts_at(answer: &Response<Body>, start: u64) -> bool {
    field(answer, CONTENT_RANGE).is_some_and(|range| range.starts_with(&format!("bytes {start}-")))
}

/// Refuses a response that was compressed for transport. Some servers declare a `.gz` file to be compressed for transport too.
fn check_encoding(answer: &Response<Body>, address: &str) -> Result<(), Fault> {
    match field(answer, CONTENT_ENCODING) {
        None | Some("" | "identity") => Ok(()),
        Some("gzip" | "x-gzip") if address.ends_with(".gz") => Ok(()),
        Some(encoding) => {
            Err(Fault::Answer(format!("the server encoded it unasked as `{}`", excerpt(encoding))))
        }
    }
}

/// Returns the size of the whole file, given as `size` or by the response. `done` bytes are already on disk.
fn total(answer: &Response<Body>, done: u64, size: Option<u64>) -> Result<Option<u64>, Fault> {
    let length = answer.body().content_length().map(|length| length.saturating_add(done));
    let of_range = field(answer, CONTENT_RANGE).filter(|_| answer.status() == 206);
    let said = of_range.and_then(|range| range.rsplit_once('/')?.1.parse().ok()).or(length);
    let reason = match (said, size) {
        (Some(said), _) if said > MAX_BYTES => format!("{said} bytes exceed the limit of {MAX_BYTES}"),
        (Some(said), Some(size)) if said != size => {
            format!("the server sends {said} bytes, expected {size}")
        }
        _ => return Ok(size.or(said)),
    };
    Err(Fault::Answer(reason))
}

fn local(path: &Path, source: std::io::Error) -> Fault {
    Fault::Local(Error::writing(path)(source))
}

#[cfg(test)]
pub(crate) mod tests;
