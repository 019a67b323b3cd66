use super::*;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use tempfile::TempDir;

/// A server on a free port, which runs until the test process ends.
pub(crate) struct TestServer {
    pub(crate) address: String,
    /// Header sections of all requests.
    requests: Arc<Mutex<Vec<String>>>,
}

impl TestServer {
    /// Starts a server; `answer` gets the header section of a request in lower case, and the stream.
    pub(crate) fn start(answer: impl Fn(&str, &mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let lines = BufReader::new(&stream).lines().map(Result::unwrap);
                let head = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
                kept.lock().unwrap().push(head.to_lowercase());
                answer(&head.to_lowercase(), &mut stream);
            }
        });
        Self { address, requests }
    }

    fn fixed(head: &str, body: &[u8]) -> Self {
        let answer = [format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").as_bytes(), body].concat();
        Self::start(move |_, stream| stream.write_all(&answer).unwrap())
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Resumes a download after the bytes `present`; returns the outcome and the content of the file.
fn resume(client: &Client, address: &str, present: &[u8], size: Option<u64>) -> (Result<(), Fault>, Vec<u8>) {
    let folder = TempDir::new().unwrap();
    let part = folder.path().join("a.part");
    fs::write(&part, present).unwrap();
    let result = client.resume(address, &part, size, &mut |_, _| ());
    (result, fs::read(&part).unwrap())
}

fn reason(result: Result<(), Fault>) -> String {
    match result {
        Err(Fault::Answer(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_that_falls_silent_is_given_up() {
    let (end, until_end) = mpsc::channel::<()>();
    let server = TestServer::start(move |_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\ntext").unwrap();
        let _ = until_end.recv(); // the connection stays open until the test is over
    });
    let client = Client::with_silence(Duration::from_millis(200));
    let (result, present) = resume(&client, &server.address, b"", None);
    assert!(reason(result).starts_with("broke off after 4 bytes (timeout"));
    assert_eq!(present, b"text", "what came is kept");
    drop(end);
}

#[test]
fn a_part_that_was_not_asked_for_is_refused() {
    let server =
        TestServer::fixed("206 Partial Content\r\nContent-Range: bytes 0-3/8\r\nContent-Length: 4", b"text");
    for present in [&b""[..], b"te"] {
        let (result, kept) = resume(&Client::new(), &server.address, present, None);
        assert_eq!(reason(result), "the server sent a part that was not requested");
        assert_eq!(kept, present);
    }
}

#[test]
fn sizes_other_than_promised_are_refused() {
    for (length, size, expected) in [
        ("\r\nContent-Length: 4", Some(5), "the server sends 4 bytes, expected 5"),
        (
            "\r\nContent-Length: 1000000000000000",
            None,
            "1000000000000000 bytes exceed the limit of 68719476736",
        ),
        // Without `Content-Length`, an answer ends with the connection.
        ("", Some(3), "more than the expected 3 bytes"),
    ] {
        let server = TestServer::fixed(&format!("200 OK{length}"), b"text");
        let (result, present) = resume(&Client::new(), &server.address, b"", size);
        assert_eq!((reason(result).as_str(), present), (expected, Vec::new()));
    }
}

#[test]
fn a_complete_part_is_not_requested_and_others_restart_if_ranges_are_ignored() {
    let server = TestServer::fixed("200 OK\r\nContent-Length: 4", b"text");
    resume(&Client::new(), &server.address, b"text", Some(4)).0.unwrap();
    assert!(server.requests().is_empty());
    for before in [&b"??"[..], b"much text"] {
        let (result, present) = resume(&Client::new(), &server.address, before, Some(4));
        result.unwrap();
        assert_eq!(present, b"text");
    }
    assert!(server.requests()[0].contains("range: bytes=2-"));
}

#[test]
fn content_encodings_are_refused_unless_the_file_is_compressed() {
    let server = TestServer::fixed("200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4", b"text");
    let get = |name: &str| resume(&Client::new(), &format!("{}/{name}", server.address), b"", None).0;
    assert_eq!(reason(get("a.json")), "the server encoded it unasked as `gzip`");
    get("a.gz").unwrap();
}
