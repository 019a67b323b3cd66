//! Downloads from servers that may be hostile: silence and size are limited, a token is only sent to the server that it
//! is for, and a download resumes where it stopped.
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_RANGE, LOCATION, RANGE};
use ureq::http::uri::Scheme;
use ureq::http::{HeaderName, Method, Request, Response, Uri};
use ureq::{Agent, Body};

use words::excerpt;

/// Called during a download with the bytes so far, and the bytes in all if known.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(u64, Option<u64>);

const CONNECT: Duration = Duration::from_secs(20);
/// The longest silence before or during an answer. A whole download may take any time.
const SILENCE: Duration = Duration::from_secs(60);
const REDIRECTS: usize = 10;
/// The most bytes that are downloaded, more than any file that this project reads.
const MOST_BYTES: u64 = 64 << 30;
/// The most bytes of an answer that is held in memory.
const MOST_TEXT: u64 = 32 << 20;

/// Why a file could not be downloaded.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The server answered with this status.
    Status(u16),
    /// A message of the transport, or what is wrong with the answer.
    Answer(String),
    /// The file could not be written.
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

/// Asks servers for files.
pub(crate) struct Client {
    agent: Agent,
    token: Option<Token>,
}

/// A secret and the only server that it may be sent to.
struct Token {
    server: Server,
    field: String,
}

/// Which redirects are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Redirects {
    /// Only relative ones, which stay on the same server; as in huggingface_hub.
    Relative,
    /// All, to any server.
    All,
}

/// An address without its path. Another port is another server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Server {
    scheme: Scheme,
    host: String,
    port: u16,
}

impl Client {
    /// A client without a token.
    pub(crate) fn new() -> Self {
        Self::with_silence(SILENCE)
    }

    fn with_silence(silence: Duration) -> Self {
        // Without "identity" a server may compress what it sends, and ranges would count compressed bytes. Redirects are
        // followed by us, because the transport takes another port of the same host for the same server.
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .accept_encoding("identity")
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(silence))
            .timeout_per_read(Some(silence))
            .build();
        Self { agent: agent.into(), token: None }
    }

    /// Sends `token` to the server of `address` and to no other.
    pub(crate) fn with_token(mut self, token: &str, address: &str) -> Result<Self, Fault> {
        let server = Server::of(&parse(address)?)?;
        self.token = Some(Token { server, field: format!("Bearer {token}") });
        Ok(self)
    }

    /// The text at `address`.
    pub(crate) fn text(&self, address: &str) -> Result<String, Fault> {
        let mut answer = succeeded(self.ask(&Method::GET, address, 0, Redirects::All)?)?;
        let body = answer.body_mut().with_config().limit(MOST_TEXT);
        body.read_to_string().map_err(|error| Fault::answer(&error))
    }

    /// What the server of `address` says about a file, even if it keeps it on another server.
    pub(crate) fn describe(&self, address: &str) -> Result<Description, Fault> {
        let answer = self.ask(&Method::HEAD, address, 0, Redirects::Relative)?;
        if !answer.status().is_redirection() && !answer.status().is_success() {
            return Err(Fault::Status(answer.status().as_u16()));
        }
        Ok(Description { answer })
    }

    /// Downloads `address` to `part`, and goes on from what `part` holds already. `size` is that of the whole file, if
    /// known.
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
        let mut answer = self.ask(&Method::GET, address, start, Redirects::All)?;
        if start > 0 && answer.status() == 416 {
            // The server has nothing beyond what is there, which may be another version: start anew.
            answer = self.ask(&Method::GET, address, 0, Redirects::All)?;
        }
        let done = match answer.status().as_u16() {
            206 if start > 0 && starts_at(&answer, start) => start,
            200 => 0, // the server or a proxy does not support ranges and sends the whole file
            206 => return Err(Fault::Answer("the server sent another part than asked for".to_owned())),
            status => return Err(Fault::Status(status)),
        };
        check_encoding(&answer, address)?;
        let total = total(&answer, done, size)?;
        let file = open(part, done > 0).map_err(|source| write_fault(part, source))?;
        Incoming { part, file, done, total }.receive(answer, progress)
    }

    fn ask(
        &self,
        method: &Method,
        address: &str,
        start: u64,
        redirects: Redirects,
    ) -> Result<Response<Body>, Fault> {
        let mut place = parse(address)?;
        for _ in 0..=REDIRECTS {
            let answer = self.ask_once(method, &place, start)?;
            // Not every status of this group redirects; 304, for one, does not.
            let Some(location) = field(&answer, LOCATION).filter(|_| answer.status().is_redirection()) else {
                return Ok(answer);
            };
            if redirects == Redirects::Relative && is_absolute(location) {
                return Ok(answer);
            }
            place = follow(&place, location)?;
        }
        Err(Fault::Answer(format!("more than {REDIRECTS} redirects")))
    }

    fn ask_once(&self, method: &Method, place: &Uri, start: u64) -> Result<Response<Body>, Fault> {
        let mut request = Request::builder().method(method).uri(place);
        if start > 0 {
            request = request.header(RANGE, format!("bytes={start}-"));
        }
        let server = Server::of(place)?;
        if let Some(token) = self.token.as_ref().filter(|token| token.server == server) {
            request = request.header(AUTHORIZATION, &token.field);
        }
        let request = request.body(()).map_err(|error| Fault::answer(&error))?;
        self.agent.run(request).map_err(|error| Fault::answer(&error))
    }
}

/// What a server says about a file without sending it.
pub(crate) struct Description {
    answer: Response<Body>,
}

impl Description {
    /// A header field.
    pub(crate) fn field(&self, name: &'static str) -> Option<&str> {
        field(&self.answer, HeaderName::from_static(name))
    }

    /// Whether the file is elsewhere, so that fields about the body do not describe it.
    pub(crate) fn is_redirection(&self) -> bool {
        self.answer.status().is_redirection()
    }
}

impl Fault {
    fn answer(reason: &dyn Display) -> Self {
        Self::Answer(excerpt(&reason.to_string()))
    }
}

impl Server {
    fn of(address: &Uri) -> Result<Self, Fault> {
        let (Some(scheme), Some(host)) = (address.scheme(), address.host()) else {
            return Err(no_address(&address.to_string()));
        };
        let usual = match scheme.as_str() {
            "https" => 443,
            "http" => 80,
            _ => return Err(no_address(&address.to_string())),
        };
        let port = address.port_u16().unwrap_or(usual);
        Ok(Self { scheme: scheme.clone(), host: host.to_ascii_lowercase(), port })
    }
}

/// A file that is being received.
struct Incoming<'a> {
    part: &'a Path,
    file: File,
    /// Bytes in the file so far.
    done: u64,
    total: Option<u64>,
}

impl Incoming<'_> {
    /// Appends the body of the answer.
    fn receive(mut self, answer: Response<Body>, progress: Progress) -> Result<(), Fault> {
        let most = self.total.unwrap_or(MOST_BYTES);
        let mut body = answer.into_body().into_reader();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = body.read(&mut buffer).map_err(|error| self.broke_off(&error))?;
            if count == 0 {
                break;
            }
            if count as u64 > most - self.done {
                return Err(Fault::Answer(format!("more than the {most} bytes that it should have")));
            }
            let written = self.file.write_all(&buffer[..count]);
            written.map_err(|source| write_fault(self.part, source))?;
            self.done += count as u64;
            progress(self.done, self.total);
        }
        if let Some(total) = self.total.filter(|&total| self.done < total) {
            return Err(self.broke_off(&format!("of {total}")));
        }
        // It is renamed next, and after a crash the final name must not stand for half a file.
        self.file.sync_all().map_err(|source| write_fault(self.part, source))
    }

    fn broke_off(&self, reason: &dyn Display) -> Fault {
        let reason = excerpt(&reason.to_string());
        Fault::Answer(format!("broke off after {} bytes ({reason}), fetch again to go on", self.done))
    }
}

fn succeeded(answer: Response<Body>) -> Result<Response<Body>, Fault> {
    if answer.status().is_success() { Ok(answer) } else { Err(Fault::Status(answer.status().as_u16())) }
}

fn field(answer: &Response<Body>, name: HeaderName) -> Option<&str> {
    answer.headers().get(name)?.to_str().ok()
}

/// Whether `Content-Range: bytes <start>-<end>/<size>` begins at `start`.
fn starts_at(answer: &Response<Body>, start: u64) -> bool {
    field(answer, CONTENT_RANGE).is_some_and(|range| range.starts_with(&format!("bytes {start}-")))
}

/// Refuses an answer that was compressed on the way. A `.gz` file is compressed in itself, but some servers call that
/// compressed on the way too.
fn check_encoding(answer: &Response<Body>, address: &str) -> Result<(), Fault> {
    match field(answer, CONTENT_ENCODING) {
        None | Some("" | "identity") => Ok(()),
        Some("gzip" | "x-gzip") if address.ends_with(".gz") => Ok(()),
        Some(encoding) => {
            Err(Fault::Answer(format!("the server sent it as `{}`, though asked not to", excerpt(encoding))))
        }
    }
}

/// The size of the whole file, given as `size` or stated in the answer. `done` bytes are there already.
fn total(answer: &Response<Body>, done: u64, size: Option<u64>) -> Result<Option<u64>, Fault> {
    let length = answer.body().content_length().map(|length| length.saturating_add(done));
    let of_range = field(answer, CONTENT_RANGE).filter(|_| answer.status() == 206);
    let said = of_range.and_then(|range| range.rsplit_once('/')?.1.parse().ok()).or(length);
    let reason = match (said, size) {
        (Some(said), _) if said > MOST_BYTES => format!("{said} bytes are more than {MOST_BYTES}"),
        (Some(said), Some(size)) if said != size => {
            format!("the server sends {said} bytes, but should send {size}")
        }
        _ => return Ok(size.or(said)),
    };
    Err(Fault::Answer(reason))
}

fn open(part: &Path, append: bool) -> std::io::Result<File> {
    if append { OpenOptions::new().append(true).open(part) } else { File::create(part) }
}

fn parse(address: &str) -> Result<Uri, Fault> {
    address.parse().map_err(|_| no_address(address))
}

fn no_address(address: &str) -> Fault {
    Fault::Answer(format!("`{}` is no address of http or https", excerpt(address)))
}

fn is_absolute(location: &str) -> bool {
    ["http://", "https://", "//"].iter().any(|start| location.starts_with(start))
}

/// Where a redirect leads, by RFC 3986, section 5.2, except that dots in relative paths are left to the server.
fn follow(from: &Uri, location: &str) -> Result<Uri, Fault> {
    let Server { scheme, .. } = Server::of(from)?;
    let authority = from.authority().map_or("", |authority| authority.as_str());
    let to = if location.starts_with("http://") || location.starts_with("https://") {
        parse(location)?
    } else if location.starts_with("//") {
        parse(&format!("{scheme}:{location}"))?
    } else if location.starts_with('/') {
        parse(&format!("{scheme}://{authority}{location}"))?
    } else {
        let folder = from.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        parse(&format!("{scheme}://{authority}{folder}/{location}"))?
    };
    if scheme == Scheme::HTTPS && to.scheme() == Some(&Scheme::HTTP) {
        return Err(Fault::Answer("redirected from https to http".to_owned()));
    }
    Ok(to)
}

fn write_fault(path: &Path, source: std::io::Error) -> Fault {
    Fault::Write { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
