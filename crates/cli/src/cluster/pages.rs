//! A node's pages over HTTP, and the samples of its `/metrics`.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use anyhow::{Context as _, bail};

/// To connect, and for each read.
const PATIENCE: Duration = Duration::from_secs(5);

/// Of a page, with its head.
const PAGE_BYTES_MAX: u64 = 16 << 20;

/// The address of a node's pages.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    authority: String,
}

impl std::str::FromStr for Pages {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        match scheme {
            "http" if authority.contains(['/', '@']) || !authority.contains(':') => {
                Err("expected http://HOST:PORT")
            }
            "http" => Ok(Self {
                authority: authority.to_owned(),
            }),
            "https" => Err("pages are asked for without TLS: expected http://HOST:PORT"),
            _ => Err("expected http://HOST:PORT"),
        }
    }
}

impl std::fmt::Display for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.authority)
    }
}

impl Pages {
    pub(super) fn of(address: std::net::SocketAddr) -> Self {
        Self {
            authority: address.to_string(),
        }
    }

    /// The samples of `/metrics`.
    pub(super) fn metrics(&self) -> anyhow::Result<Vec<Sample>> {
        let (status, body) = self.get("/metrics")?;
        if status != 200 {
            bail!("/metrics is answered with {status}");
        }
        Ok(body.lines().filter_map(Sample::parse).collect())
    }

    /// The problems in `/health`; empty if that is disabled.
    pub(super) fn ailments(&self) -> anyhow::Result<Vec<String>> {
        let (status, body) = self.get("/health")?;
        let words = ["ok", "degraded"];
        let lines = body
            .lines()
            .filter(|line| !words.contains(line) && status != 404);
        Ok(lines.map(str::to_owned).collect())
    }

    fn get(&self, path: &str) -> anyhow::Result<(u16, String)> {
        let authority = &self.authority;
        let mut addresses = authority.to_socket_addrs()?;
        let address = addresses.next().context("there is no such host")?;
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        // HTTP/1.0, so that the answer ends with the connection and is not chunked.
        let request = format!("GET {path} HTTP/1.0\r\nHost: {authority}\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        let length = stream.take(PAGE_BYTES_MAX).read_to_end(&mut answer)?;
        if length as u64 == PAGE_BYTES_MAX {
            bail!("{path} is longer than 16 MiB");
        }
        let answer = String::from_utf8(answer).context("the answer is no text")?;
        let (head, body) = answer
            .split_once("\r\n\r\n")
            .context("the answer is no HTTP")?;
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Ok((status.context("the answer is no HTTP")?, body.to_owned()))
    }
}

/// One line of `/metrics`.
#[derive(Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) name: String,
    labels: Vec<(String, String)>,
    pub(super) value: f64,
}

impl Sample {
    pub(super) fn label(&self, name: &str) -> &str {
        let mut labels = self.labels.iter();
        let found = labels.find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let (name, mut rest) = line.split_at(line.find(['{', ' '])?);
        let mut labels = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            while !rest.starts_with('}') {
                let (label, behind) = rest.split_once("=\"")?;
                let (value, behind) = quoted(behind)?;
                labels.push((label.to_owned(), value));
                rest = behind.strip_prefix(',').unwrap_or(behind);
            }
            rest = rest.strip_prefix('}')?;
        }
        let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
        Some(Self {
            name: name.to_owned(),
            labels,
            value,
        })
    }
}

/// A label's value up to its quote, and the text behind that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_with_their_labels() {
        let sample = Sample::parse(r#"a_total{realm="x\"},y",cause="gap"} 2"#).expect("it is one");
        assert_eq!((&*sample.name, sample.value), ("a_total", 2.0));
        assert_eq!(sample.label("realm"), "x\"},y");
        assert_eq!((sample.label("cause"), sample.label("none")), ("gap", ""));
        assert_eq!(Sample::parse("up 1").map(|sample| sample.value), Some(1.0));
        for none in ["# HELP a b", "", "a{b=\"c\" 1", "a{b} 1", "a x"] {
            assert_eq!(Sample::parse(none), None, "{none}");
        }
    }

    #[test]
    fn pages_are_asked_for_at_a_host_and_port() {
        let read = |text: &str| text.parse::<Pages>().map(|pages| pages.to_string());
        assert_eq!(read("http://n1:8080/"), Ok("n1:8080".to_owned()));
        assert_eq!(read("n1:8080"), Ok("n1:8080".to_owned()));
        for wrong in [
            "https://n1:8080",
            "http://n1",
            "ws://n1:80",
            "http://a@n1:80",
            "http://n1:80/x",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
