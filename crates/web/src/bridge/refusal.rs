//! Reasons for rejecting a request, with Crossbar.io's texts.

use std::fmt;

use crosstie_wamp::codec::Unreadable;
use http::StatusCode;

/// Why a request is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Only POST, PUT and OPTIONS are allowed.
    Method(String),
    ContentType(Vec<u8>),
    Charset,
    SeveralLengths,
    LengthDiffers {
        body_bytes: usize,
        said_bytes: u64,
    },
    TooLong {
        bytes: u64,
        bytes_max: usize,
    },
    GithubSignature,
    /// A field of a signed request is missing.
    Missing(&'static str),
    BadTimestamp(String),
    BadSequence(String),
    BadNonce(String),
    Expired,
    Key,
    Signature,
    Address,
    NotTls,
    /// The request was accepted before.
    Replay,
    /// Too many requests are remembered to accept another.
    ReplaysFull,
    NotUtf8,
    NotJson,
    NotDict,
    NoKey(&'static str),
    /// The value of a key has the wrong type.
    BadKey {
        key: &'static str,
        expected: &'static str,
    },
    /// Its arguments would end the receivers' sessions.
    Unreadable(Unreadable),
    BadOption {
        option: String,
        expected: &'static str,
    },
}

impl Refusal {
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Key | Self::Signature => StatusCode::UNAUTHORIZED,
            Self::ReplaysFull => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FORM: &str = "Request body was valid JSON, but not well formed";
        match self {
            Self::Method(method) => write!(
                f,
                "Method not accepted by the REST bridge. ({} not allowed, only POST, PUT)",
                Quoted(method.as_bytes())
            ),
            Self::ContentType(given) => write!(
                f,
                "Non-accepted content type. (must be one of '[b'application/json']', not '{}')",
                Quoted(given)
            ),
            Self::Charset => f.write_str("Non-accepted request encoding, must be UTF-8."),
            Self::SeveralLengths => {
                f.write_str("Multiple versions of the same header is not allowed.")
            }
            Self::LengthDiffers {
                body_bytes,
                said_bytes,
            } => write!(
                f,
                "Body length ({body_bytes}) is different to Content-Length header ({said_bytes})."
            ),
            Self::TooLong { bytes, bytes_max } => write!(
                f,
                "Request too long. ({bytes} is longer than accepted {bytes_max})"
            ),
            Self::GithubSignature | Self::NotTls => {
                f.write_str("Malformed request to the REST bridge.")
            }
            Self::Missing(_) | Self::BadTimestamp(_) | Self::BadSequence(_) | Self::BadNonce(_) => {
                write!(f, "REST bridge signature was invalid ({}).", Field(self))
            }
            Self::Expired => f.write_str("Request expired, too old timestamp."),
            Self::Key => f.write_str("REST bridge signature key not valid."),
            Self::Signature => f.write_str("REST bridge signature secret not valid."),
            Self::Address => f.write_str("Request denied based on IP address."),
            Self::Replay => f.write_str("Request replayed, its signature was taken before."),
            Self::ReplaysFull => {
                f.write_str("Too many signed requests are remembered to take another one now.")
            }
            Self::NotUtf8 => f.write_str("Non-decodable request body, was not UTF-8."),
            Self::NotJson => f.write_str("Request body was invalid JSON."),
            Self::NotDict => write!(f, "{FORM} (must be a dict)."),
            Self::NoKey(key) => write!(f, "{FORM} (missing key '{key}')."),
            Self::Unreadable(unreadable) => write!(f, "{FORM} ({unreadable})."),
            Self::BadKey { key, expected } => write!(f, "{FORM} ('{key}' must be {expected})."),
            Self::BadOption { option, expected } => {
                write!(f, "{FORM} (option '{option}' must be {expected}).")
            }
        }
    }
}

/// The fault of a field in a signed request.
struct Field<'r>(&'r Refusal);

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Refusal::Missing("timestamp") => f.write_str(
                "missing mandatory field - signed request required, but mandatory 'timestamp' field missing",
            ),
            Refusal::Missing(field) => {
                write!(f, "missing mandatory field - '{field}' field missing")
            }
            Refusal::BadTimestamp(text) => write!(
                f,
                "invalid timestamp '{text}' (must be UTC/ISO-8601, e.g. '2011-10-14T16:59:51.123Z')"
            ),
            Refusal::BadSequence(text) => {
                write!(f, "invalid sequence number '{text}' (must be an integer)")
            }
            Refusal::BadNonce(text) => {
                write!(f, "invalid nonce '{text}' (must be an integer)")
            }
            _ => Ok(()),
        }
    }
}

/// Bytes in Python's notation.
struct Quoted<'b>(&'b [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = match self.0.contains(&b'\'') && !self.0.contains(&b'"') {
            true => '"',
            false => '\'',
        };
        write!(f, "b{quote}")?;
        for byte in self.0 {
            match char::from(*byte) {
                c if c == quote || c == '\\' => write!(f, "\\{c}")?,
                '\t' => f.write_str("\\t")?,
                c @ ' '..='~' => write!(f, "{c}")?,
                _ => write!(f, "\\x{byte:02x}")?,
            }
        }
        write!(f, "{quote}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_quoted_as_python_does() {
        for (bytes, expected) in [
            (&b"GET"[..], "b'GET'"),
            (b"", "b''"),
            (b"it's", "b\"it's\""),
            (b"it's \"so\"", "b'it\\'s \"so\"'"),
            (b"a\tb\\\xff", "b'a\\tb\\\\\\xff'"),
        ] {
            assert_eq!(Quoted(bytes).to_string(), expected);
        }
    }
}
