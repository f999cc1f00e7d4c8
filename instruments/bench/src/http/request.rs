//! A request: for a file, of a call, of a publication; and its bytes.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::expected::Expected;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// A small file, the same for all.
    File,
    /// A call of a procedure that returns its arguments.
    Call,
    /// A publication, answered once it was made.
    Publish,
}

pub(super) const FILE: &str = "file.txt";
const FILE_BYTES: usize = 1024;
const TOPIC: &str = "crosstie.bench.http.topic";
/// Besides the number of the caller or publisher.
const TEXT: &str = "sixty-four bytes of text that is called with and comes back agai";

impl Request {
    /// The request of one client, and the expected answer.
    pub(super) fn exchange(
        self,
        address: SocketAddr,
        procedure: &str,
        number: usize,
    ) -> (Vec<u8>, Expected) {
        let args = json!([number, TEXT]);
        match self {
            Self::File => (get(address), Expected::Bytes(file())),
            Self::Call => {
                let body = json!({ "procedure": procedure, "args": [&args] });
                let answer = json!({ "args": [args] });
                (post(address, "call", &body), Expected::Value(answer))
            }
            Self::Publish => {
                let body = json!({ "topic": TOPIC, "args": [args] });
                (post(address, "publish", &body), Expected::Publication)
            }
        }
    }
}

/// The content of the file.
pub(super) fn file() -> Vec<u8> {
    let line = b"A line of the file that is asked for, which has sixteen of them.";
    let mut bytes = line.repeat(FILE_BYTES / line.len());
    bytes.resize(FILE_BYTES, b'\n');
    bytes
}

fn get(address: SocketAddr) -> Vec<u8> {
    format!("GET /{FILE} HTTP/1.1\r\nHost: {address}\r\nAccept: */*\r\n\r\n").into_bytes()
}

fn post(address: SocketAddr, path: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    format!(
        "POST /{path} HTTP/1.1\r\nHost: {address}\r\nAccept: */*\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
