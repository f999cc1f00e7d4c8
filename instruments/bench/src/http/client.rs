//! Requests in sequence on one connection; and a session over long-poll in such requests.

use std::net::SocketAddr;

use serde::Deserialize;

use super::answer;
use super::driver::late;
use crate::load::Stream;
use crate::process::{PATIENCE, WorkerError};
use crate::subject::Endpoint;

pub(crate) struct Client {
    host: String,
    stream: Stream,
    input: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr, host: &str) -> Result<Self, WorkerError> {
        let endpoint = Endpoint::Tcp(address);
        let stream = Stream::connect(&endpoint)
            .map_err(|error| WorkerError::Connect(endpoint.to_string(), error))?;
        stream.limit_waiting(Some(PATIENCE))?;
        Ok(Self {
            host: host.to_owned(),
            stream,
            input: Vec::new(),
        })
    }

    /// Posts a body; returns the answer's body, or its refusal as an error.
    pub(crate) fn post(&mut self, path: &str, body: &str) -> Result<Vec<u8>, WorkerError> {
        self.begin(path, body)?;
        self.finish()
    }

    /// Posts a body without waiting.
    pub(crate) fn begin(&self, path: &str, body: &str) -> Result<(), WorkerError> {
        let Self { host, stream, .. } = self;
        let length = body.len();
        let request = format!(
            "POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).map_err(late)
    }

    /// The answer to the posted body.
    pub(crate) fn finish(&mut self) -> Result<Vec<u8>, WorkerError> {
        let mut buffer = [0; 4096];
        self.input.clear();
        loop {
            match self.stream.read(&mut buffer).map_err(late)? {
                0 => return Err(WorkerError::Closed("answering")),
                length => self.input.extend_from_slice(&buffer[..length]),
            }
            let Some(answer) = answer::read(&self.input).map_err(WorkerError::handshake)? else {
                continue;
            };
            return match answer.status {
                200..300 => Ok(answer.body.into_owned()),
                status => {
                    let text = String::from_utf8_lossy(&answer.body);
                    Err(WorkerError::Refused(format!("{status} {text}")))
                }
            };
        }
    }
}

/// A session, by the path of its transport; any client can carry it.
pub(crate) struct LongPoll {
    at: String,
}

#[derive(Deserialize)]
struct Opened {
    transport: String,
}

impl LongPoll {
    /// A session that has joined.
    pub(crate) fn open(client: &mut Client, base: &str, realm: &str) -> Result<Self, WorkerError> {
        let body = r#"{"protocols": ["wamp.2.json"]}"#;
        let opened = client.post(&format!("{base}/open"), body)?;
        let opened: Opened = serde_json::from_slice(&opened)?;
        let session = Self {
            at: format!("{base}/{}", opened.transport),
        };
        let hello = format!(r#"[1, "{realm}", {{"roles": {{"subscriber": {{}}}}}}]"#);
        client.post(&session.send_path(), &hello)?;
        // The WELCOME is received once.
        client.post(&session.receive_path(), "")?;
        Ok(session)
    }

    /// Subscribes; the answer is received like any message.
    pub(crate) fn subscribe(&self, client: &mut Client, topic: &str) -> Result<(), WorkerError> {
        let subscribe = format!(r#"[32, 1, {{}}, "{topic}"]"#);
        client.post(&self.send_path(), &subscribe).map(drop)
    }

    pub(crate) fn receive_path(&self) -> String {
        format!("{}/receive", self.at)
    }

    fn send_path(&self) -> String {
        format!("{}/send", self.at)
    }
}
