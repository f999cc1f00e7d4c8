//! The beginning of a connection to a server: INFO, and the CONNECT that answers it.

use std::io;

use serde_json::{Value as Json, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::credentials::Credentials;

/// Maximum length of INFO, which also names the cluster's other servers.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// Earliest supported release of the server, as its major and minor version. Both this one and the next are tested;
/// servers before 2.11 lack batched reads and messages with a time to live.
const RELEASE_MIN: (u64, u64) = (2, 14);

/// The contents of INFO.
#[derive(Clone, Debug)]
pub struct Greeting {
    pub id: String,
    pub name: String,
    /// The server's version, such as `2.15.2`.
    pub version: String,
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
        let greeting = Self::decode(&line).map_err(invalid)?;
        greeting.check_release().map_err(|why| invalid(&why))?;
        Ok(greeting)
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
            version: word("version").ok_or("INFO has no version")?,
            payload_bytes_max: json["max_payload"].as_u64().map_or(1 << 20, |n| n as usize),
            nonce: word("nonce"),
            is_tls_required: json["tls_required"].as_bool() == Some(true),
            has_streams: json["jetstream"].as_bool() == Some(true),
        })
    }

    /// Refuses a server of an earlier release, or of a version that is not numbered like a release.
    fn check_release(&self) -> Result<(), String> {
        let mut numbers = self
            .version
            .splitn(3, '.')
            .map(|number| number.parse().ok());
        let release = (numbers.next().flatten(), numbers.next().flatten());
        let (major, minor) = RELEASE_MIN;
        if release >= (Some(major), Some(minor)) && release.1.is_some() {
            return Ok(());
        }
        let (name, version) = (&self.name, &self.version);
        Err(format!(
            "expected nats-server {major}.{minor} or later, found version {version:?} ('{name}')"
        ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_releases_are_refused_by_name() {
        for (version, is_accepted) in [
            ("2.14.0", true),
            ("2.14.10", true),
            ("2.15.0-RC.1", true),
            ("2.100.0", true),
            ("3.0.0", true),
            ("3.0", true),
            ("2.13.9", false),
            ("2.9.25", false),
            ("1.999.0", false),
            ("3", false),
            ("3.x.1", false),
            ("-2.15.0", false),
            ("", false),
        ] {
            let line =
                format!(r#"INFO {{"server_id":"s","server_name":"n1","version":"{version}"}}"#);
            let greeting = Greeting::decode(line.as_bytes()).expect("it has what it needs");
            let checked = greeting.check_release();
            assert_eq!(checked.is_ok(), is_accepted, "{version}");
            if let Err(why) = checked {
                let expected =
                    format!("expected nats-server 2.14 or later, found version {version:?} ('n1')");
                assert_eq!(why, expected);
            }
        }
        assert!(Greeting::decode(br#"INFO {"server_id":"s"}"#).is_err());
    }
}
