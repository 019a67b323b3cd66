//! Downloads that go on where they stopped.
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use ureq::http::Response;
use ureq::{Agent, Body};

use crate::Error;

/// Told about a download: bytes so far, and bytes in all where known.
type Progress<'a> = &'a mut dyn FnMut(u64, Option<u64>);

const CONNECT: Duration = Duration::from_secs(20);
/// The longest silence in the middle of a download.
const SILENCE: Duration = Duration::from_secs(60);

/// Downloads `address` to `part`; what `part` holds already is not asked for again.
///
/// Returns whether the transport may have decompressed it. It does so where a server says that a file
/// is compressed only on the way, as some say of `.gz` though asked not to; all that can then be seen
/// is that the length is not known. hf-hub turns this on for all who use the same transport.
pub(super) fn resume(address: &str, part: &Path, progress: Progress) -> Result<bool, Error> {
    let present = part.metadata().map_or(0, |metadata| metadata.len());
    let mut response = request(address, present)?;
    if present > 0 && response.status() == 416 {
        response = request(address, 0)?; // nothing after what is there: it may be of another version
    }
    let done = match response.status().as_u16() {
        206 if starts_at(&response, present) => present,
        200 => 0, // the server knows no ranges: all of it comes again
        206 => return Err(network(address, "the server sent another part than asked for")),
        status => return Err(network(address, format!("the server answered {status}"))),
    };
    let file = open(part, done > 0).map_err(|source| Error::Write { path: part.to_owned(), source })?;
    let decoded = response.body().content_length().is_none();
    receive(address, response, part, file, done, progress)?;
    Ok(decoded)
}

fn request(address: &str, start: u64) -> Result<Response<Body>, Error> {
    // Without "identity" a server may compress on the way, and ranges then count other bytes.
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .accept_encoding("identity")
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(SILENCE))
        .timeout_per_read(Some(SILENCE))
        .build()
        .into();
    let request = agent.get(address);
    let request = if start > 0 { request.header("Range", format!("bytes={start}-")) } else { request };
    request.call().map_err(|error| network(address, error))
}

/// Whether `Content-Range: bytes <start>-<end>/<size>` begins at `start`.
fn starts_at(response: &Response<Body>, start: u64) -> bool {
    let range = response.headers().get("content-range").and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {start}-")))
}

fn open(part: &Path, append: bool) -> std::io::Result<File> {
    if append { OpenOptions::new().append(true).open(part) } else { File::create(part) }
}

/// Appends the body to `file`, which holds `done` bytes.
fn receive(
    address: &str,
    response: Response<Body>,
    part: &Path,
    mut file: File,
    mut done: u64,
    progress: Progress,
) -> Result<(), Error> {
    let length = response.body().content_length();
    let total = length.map(|length| done + length);
    let mut body = response.into_body().into_reader();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let broke_off = |reason: &dyn std::fmt::Display| {
            network(address, format!("broke off after {done} bytes ({reason}), fetch again to go on"))
        };
        let count = body.read(&mut buffer).map_err(|error| broke_off(&error))?;
        if count == 0 {
            return match total {
                Some(total) if done < total => Err(broke_off(&format!("of {total}"))),
                _ => Ok(()),
            };
        }
        file.write_all(&buffer[..count]).map_err(|source| Error::Write { path: part.to_owned(), source })?;
        done += count as u64;
        progress(done, total);
    }
}

fn network(address: &str, reason: impl ToString) -> Error {
    Error::Network { address: address.to_owned(), reason: reason.to_string() }
}
