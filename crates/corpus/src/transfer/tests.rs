use super::*;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use tempfile::TempDir;

/// A server at a port of its own until the test process ends.
pub(crate) struct TestServer {
    pub(crate) address: String,
    /// Heads of all requests.
    requests: Arc<Mutex<Vec<String>>>,
}

impl TestServer {
    /// `answer` gets the head of a request in lower case, and the stream.
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

    /// Answers everything with these header fields and this body.
    fn fixed(head: &str, body: &[u8]) -> Self {
        let answer = [format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").as_bytes(), body].concat();
        Self::start(move |_, stream| stream.write_all(&answer).unwrap())
    }

    fn leading_to(location: String) -> Self {
        Self::fixed(&format!("302 Found\r\nContent-Length: 0\r\nLocation: {location}"), b"")
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Resumes a download of which `present` is there; the outcome, and what is there then.
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
fn a_token_is_shown_to_the_host_that_is_asked_and_to_no_other() {
    let other = TestServer::fixed("200 OK\r\nContent-Length: 4", b"text");
    let hub = TestServer::leading_to(format!("{}/file", other.address.replace("127.0.0.1", "localhost")));
    let client = Client::new().with_token(Some("secret"));
    assert_eq!(client.text(&hub.address).unwrap(), "text");
    assert_eq!(resume(&client, &hub.address, b"te", None).1, b"text");

    assert_eq!(other.requests().len(), 2);
    for request in other.requests() {
        assert!(!request.contains("authorization") && !request.contains("secret"), "{request}");
    }
    assert!(other.requests()[1].contains("range: bytes=2-"));
    assert!(hub.requests().iter().all(|request| request.contains("authorization: bearer secret")));
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
fn where_ranges_are_ignored_the_file_begins_anew() {
    let server = TestServer::fixed("200 OK\r\nContent-Length: 4", b"text");
    let (result, present) = resume(&Client::new(), &server.address, b"??", Some(4));
    result.unwrap();
    assert_eq!(present, b"text");
    assert!(server.requests()[0].contains("range: bytes=2-"));
}

#[test]
fn a_part_that_was_not_asked_for_is_refused() {
    let server =
        TestServer::fixed("206 Partial Content\r\nContent-Range: bytes 0-3/8\r\nContent-Length: 4", b"text");
    for present in [&b""[..], b"te"] {
        let (result, kept) = resume(&Client::new(), &server.address, present, None);
        assert_eq!(reason(result), "the server sent another part than asked for");
        assert_eq!(kept, present);
    }
}

#[test]
fn a_part_that_ends_early_is_no_complete_file() {
    let head = "206 Partial Content\r\nContent-Range: bytes 2-3/8\r\nContent-Length: 2";
    let server = TestServer::fixed(head, b"xt");
    let (result, _) = resume(&Client::new(), &server.address, b"te", None);
    assert_eq!(reason(result), "broke off after 4 bytes (of 8), fetch again to go on");
}

#[test]
fn sizes_are_compared_before_anything_is_received() {
    let size = |head: &str, size| {
        let server = TestServer::fixed(head, b"text");
        let (result, present) = resume(&Client::new(), &server.address, b"", size);
        assert_eq!(present, b"");
        reason(result)
    };
    let other = "the server sends 4 bytes, but should send 5";
    assert_eq!(size("200 OK\r\nContent-Length: 4", Some(5)), other);
    let huge = "1000000000000000 bytes are more than 68719476736";
    assert_eq!(size("200 OK\r\nContent-Length: 1000000000000000", None), huge);
}

#[test]
fn no_more_is_received_than_was_promised_beforehand() {
    // Without a length of its own, an answer ends with the connection.
    let server = TestServer::fixed("200 OK", b"text and more");
    let (result, present) = resume(&Client::new(), &server.address, b"", Some(4));
    assert_eq!(reason(result), "more than the 4 bytes that it should have");
    assert!(present.len() <= 4);
}

#[test]
fn a_complete_part_is_not_asked_for_and_one_that_is_too_long_begins_anew() {
    let server = TestServer::fixed("200 OK\r\nContent-Length: 4", b"text");
    resume(&Client::new(), &server.address, b"text", Some(4)).0.unwrap();
    assert!(server.requests().is_empty());
    let (result, present) = resume(&Client::new(), &server.address, b"much text", Some(4));
    result.unwrap();
    assert_eq!(present, b"text");
}

#[test]
fn what_is_compressed_on_the_way_is_refused_unless_it_is_compressed_anyway() {
    let server = TestServer::fixed("200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4", b"text");
    let get = |name: &str| resume(&Client::new(), &format!("{}/{name}", server.address), b"", None).0;
    assert_eq!(reason(get("a.json")), "the server sent it as `gzip`, though asked not to");
    get("a.gz").unwrap();
}

#[test]
fn redirects_end_somewhere() {
    let server = TestServer::fixed("302 Found\r\nContent-Length: 0\r\nLocation: /again", b"");
    assert_eq!(reason(resume(&Client::new(), &server.address, b"", None).0), "too many redirects");
}

#[test]
fn what_is_no_address_is_refused_with_its_control_characters_escaped() {
    for (address, said) in
        [("ftp://a/b", "ftp://a/b"), ("huggingface", "huggingface"), ("\u{1b}[0m", "\\u{1b}[0m")]
    {
        let refusal = resume(&Client::new(), address, b"", None).0;
        assert_eq!(reason(refusal), format!("`{said}` is no address of http or https"));
    }
}
