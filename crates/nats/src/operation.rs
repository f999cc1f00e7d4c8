//! Decodes a server's operations: a line each, followed by the bytes of a message.

use std::fmt;
use std::str;

use crate::is_subject;

/// One operation of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'i> {
    /// The server's identity and limits: one JSON object.
    Info(&'i str),
    Message(Message<'i>),
    Ping,
    Pong,
    /// An operation succeeded; sent only to verbose clients.
    Ok,
    /// The server's error text, without its quotes.
    Error(&'i str),
}

/// A message of one of the client's subscriptions (MSG, HMSG).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'i> {
    pub subject: &'i str,
    /// The subscription, by the number that the client gave it.
    pub sid: u64,
    pub reply: Option<&'i str>,
    /// Empty without headers.
    pub headers: &'i [u8],
    pub payload: &'i [u8],
}

/// Maximum lengths of a server's operations.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of a line without its end; INFO is the longest.
    pub line_bytes_max: usize,
    /// Of a message, with its headers.
    pub message_bytes_max: usize,
}

/// The result of decoding the front of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<'i> {
    Operation {
        operation: Operation<'i>,
        consumed: usize,
    },
    /// Incomplete; `wanted` bytes are needed in all, or 0 if unknown.
    More { wanted: usize },
}

/// Input that no server sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    pub expected: &'static str,
    /// The beginning of the line, in ASCII.
    pub found: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, found '{}'", self.expected, self.found)
    }
}

impl std::error::Error for DecodeError {}

/// Maximum number of bytes of a wrong line in an error.
const SHOWN_BYTES_MAX: usize = 64;

const END: &[u8] = b"\r\n";

/// Decodes one operation at the front of `input`.
pub fn decode<'i>(input: &'i [u8], limits: &Limits) -> Result<Decoded<'i>, DecodeError> {
    let line_bytes_max = limits.line_bytes_max;
    let seen = &input[..input.len().min(line_bytes_max + END.len())];
    let Some(end) = seen.iter().position(|byte| *byte == b'\n') else {
        return match seen.len() < line_bytes_max + END.len() {
            true => Ok(Decoded::More { wanted: 0 }),
            false => Err(wrong("the end of a line", input)),
        };
    };
    let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
    let Ok(text) = str::from_utf8(line) else {
        return Err(wrong("text in UTF-8", line));
    };
    let (name, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    let whole = |operation| {
        Ok(Decoded::Operation {
            operation,
            consumed: end + 1,
        })
    };
    let is = |word: &str| name.eq_ignore_ascii_case(word);
    if is("MSG") || is("HMSG") {
        return message(input, (line, rest), end + 1, is("HMSG"), limits);
    }
    if is("PING") {
        return whole(Operation::Ping);
    }
    if is("PONG") {
        return whole(Operation::Pong);
    }
    if is("+OK") {
        return whole(Operation::Ok);
    }
    if is("INFO") {
        return whole(Operation::Info(rest.trim()));
    }
    if is("-ERR") {
        return whole(Operation::Error(rest.trim().trim_matches('\'')));
    }
    Err(wrong("an operation of NATS", line))
}

/// Decodes a message: its line and the bytes behind it, in the form `MSG <subject> <sid> [reply] <bytes>` or `HMSG
/// <subject> <sid> [reply] <bytes of headers> <bytes>`.
fn message<'i>(
    input: &'i [u8],
    (line, rest): (&'i [u8], &'i str),
    start: usize,
    has_headers: bool,
    limits: &Limits,
) -> Result<Decoded<'i>, DecodeError> {
    let mut words = [""; 5];
    let mut count = 0;
    for word in rest.split_ascii_whitespace() {
        *words
            .get_mut(count)
            .ok_or_else(|| wrong("fewer words", line))? = word;
        count += 1;
    }
    let numbers = 1 + usize::from(has_headers);
    let (reply, sizes) = match count.checked_sub(numbers) {
        Some(2) => (None, &words[2..count]),
        Some(3) => (Some(words[2]), &words[3..count]),
        _ => return Err(wrong("a subject, a number and a size", line)),
    };
    let size = |word: &str| {
        let size = number(word).and_then(|size| usize::try_from(size).ok());
        size.filter(|size| *size <= limits.message_bytes_max)
            .ok_or_else(|| wrong("a size within the bound", line))
    };
    let header_bytes = match has_headers {
        true => size(sizes[0])?,
        false => 0,
    };
    let bytes = size(sizes[numbers - 1])?;
    if header_bytes > bytes {
        return Err(wrong("headers within the message", line));
    }
    let sid = number(words[1]).ok_or_else(|| wrong("a subscription's number", line))?;
    if !is_subject(words[0]) {
        return Err(wrong("a subject", line));
    }
    let wanted = start + bytes + END.len();
    if input.len() < wanted {
        return Ok(Decoded::More { wanted });
    }
    if &input[start + bytes..wanted] != END {
        return Err(wrong("the end of a message where its size says", line));
    }
    let (headers, payload) = input[start..start + bytes].split_at(header_bytes);
    Ok(Decoded::Operation {
        operation: Operation::Message(Message {
            subject: words[0],
            sid,
            reply,
            headers,
            payload,
        }),
        consumed: wanted,
    })
}

/// A number without a sign.
fn number(word: &str) -> Option<u64> {
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| word.parse().ok()).flatten()
}

#[cold]
fn wrong(expected: &'static str, line: &[u8]) -> DecodeError {
    let shown = &line[..line.len().min(SHOWN_BYTES_MAX)];
    DecodeError {
        expected,
        found: shown.escape_ascii().to_string(),
    }
}
