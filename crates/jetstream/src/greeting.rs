//! The beginning of a connection to a server: INFO, and the CONNECT that answers it.

use std::io;

use serde_json::{Value as Json, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::credentials::Credentials;

/// Maximum length of INFO, which also names the cluster's other servers.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// The contents of INFO.
#[derive(Clone, Debug)]
pub struct Greeting {
    pub id: String,
    pub name: String,
    pub payload_bytes_max: usize,
    pub nonce: Option<String>,
    pub is_tls_required: bool,
    /// The server has JetStream.
    pub has_streams: bool,
}

impl Greeting {
    /// Reads INFO byte by byte. The server sends nothing more before it gets CONNECT, but bytes behind the line would
    /// belong to TLS or to the next reader.
    pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            if line.len() > LINE_BYTES_MAX {
                return Err(invalid("expected INFO of NATS, found a line without end"));
            }
            line.push(stream.read_u8().await?);
        }
        Self::decode(&line).map_err(invalid)
    }

    /// Decodes the line of INFO; an error says what is missing.
    pub fn decode(line: &[u8]) -> Result<Self, &'static str> {
        let text = str::from_utf8(line).map_err(|_| "expected INFO of NATS")?;
        let json = text.trim_ascii().strip_prefix("INFO");
        let json = json.ok_or("expected INFO of NATS, found something else")?;
        let json: Json =
            serde_json::from_str(json.trim_ascii()).map_err(|_| "INFO is no object of JSON")?;
        let word = |key: &str| json[key].as_str().map(str::to_owned);
        let id = word("server_id").ok_or("INFO has no server_id")?;
        Ok(Self {
            name: word("server_name").unwrap_or_else(|| id.clone()),
            id,
            payload_bytes_max: json["max_payload"].as_u64().map_or(1 << 20, |n| n as usize),
            nonce: word("nonce"),
            is_tls_required: json["tls_required"].as_bool() == Some(true),
            has_streams: json["jetstream"].as_bool() == Some(true),
        })
    }

    /// The JSON of CONNECT. Own messages are not echoed; with `no_responders`, the server answers requests without
    /// subscribers at once.
    pub fn connect(
        &self,
        credentials: Option<&Credentials>,
        no_responders: bool,
    ) -> Result<String, String> {
        let mut options = json!({
            "verbose": false,
            "pedantic": false,
            "echo": false,
            "headers": true,
            "no_responders": no_responders,
            "protocol": 1,
            "lang": "rust",
            "name": "crosstie",
            "version": env!("CARGO_PKG_VERSION"),
        });
        if let Some(credentials) = credentials {
            let nonce = self.nonce.as_deref();
            let nonce = nonce.ok_or("credentials are configured, and the server asks for none")?;
            options["sig"] = credentials.sign(nonce).into();
            match &credentials.jwt {
                Some(jwt) => options["jwt"] = jwt.as_str().into(),
                None => options["nkey"] = credentials.public_key().into(),
            }
        }
        Ok(options.to_string())
    }
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
