//! An answer of HTTP/1.1, parsed from received bytes (RFC 9112).

use std::borrow::Cow;

/// Status and body, the latter without its framing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) body: Cow<'a, [u8]>,
    /// Its length in bytes.
    pub(crate) length: usize,
}

/// The answer at the front of these bytes; `None` while it is incomplete.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<Answer<'_>>, &'static str> {
    let Some(head_bytes) = head_length(bytes) else {
        return Ok(None);
    };
    let (head, rest) = bytes.split_at(head_bytes);
    let head = str::from_utf8(head).map_err(|_| "the answer's head is no text")?;
    let mut lines = head.split("\r\n");
    let status = status(lines.next().unwrap_or_default())?;
    if let 204 | 304 = status {
        let (body, length) = (Cow::default(), head_bytes);
        return Ok(Some(Answer {
            status,
            body,
            length,
        }));
    }
    let body = match framing(lines)? {
        Framing::Length(length) => rest.get(..length).map(|body| (Cow::from(body), length)),
        Framing::Chunks => chunks(rest)?.map(|(body, length)| (body.into(), length)),
    };
    Ok(body.map(|(body, length)| Answer {
        status,
        body,
        length: head_bytes + length,
    }))
}

/// The length of the head, including the empty line that ends it.
fn head_length(bytes: &[u8]) -> Option<usize> {
    let ends = |at: &usize| bytes[..*at].ends_with(b"\r\n\r\n");
    let newlines = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    newlines.map(|(at, _)| at + 1).find(ends)
}

fn status(line: &str) -> Result<u16, &'static str> {
    let status = line
        .strip_prefix("HTTP/1.1 ")
        .and_then(|line| line.get(..3));
    let status = status.and_then(|status| status.parse().ok());
    status.ok_or("the answer's first line is none of HTTP/1.1")
}

#[derive(Clone, Copy)]
enum Framing {
    Length(usize),
    Chunks,
}

/// The framing of the body: it must not end with the connection.
fn framing<'a>(fields: impl Iterator<Item = &'a str>) -> Result<Framing, &'static str> {
    let mut framing = None;
    for field in fields {
        let Some((name, value)) = field.split_once(':') else {
            continue;
        };
        let found = if name.eq_ignore_ascii_case("content-length") {
            let length = value.trim().parse();
            Framing::Length(length.map_err(|_| "the answer's length is no number")?)
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.trim().eq_ignore_ascii_case("chunked") {
                return Err("the answer's transfer coding is not 'chunked'");
            }
            Framing::Chunks
        } else {
            continue;
        };
        if framing.replace(found).is_some() {
            return Err("the answer has two lengths");
        }
    }
    framing.ok_or("the answer has no length")
}

/// The chunks' content and their length in bytes; `None` while incomplete.
fn chunks(mut bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, &'static str> {
    let (all, mut content) = (bytes.len(), Vec::new());
    loop {
        let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else {
            return Ok(None);
        };
        let size = str::from_utf8(&bytes[..end]).ok();
        let size = size.and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.ok_or("a chunk's size is no number")?;
        bytes = &bytes[end + 2..];
        let Some((chunk, rest)) = bytes.split_at_checked(size) else {
            return Ok(None);
        };
        content.extend_from_slice(chunk);
        let Some(rest) = rest.strip_prefix(b"\r\n") else {
            return match rest.len() {
                0 | 1 => Ok(None),
                _ => Err("a chunk is longer than it says"),
            };
        };
        bytes = rest;
        if size == 0 {
            return Ok(Some((content, all - bytes.len())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_end_by_their_framing() {
        #[track_caller]
        fn check(text: &str, expected: Result<(u16, &str), &str>) {
            let found = read(text.as_bytes());
            let (status, body) = match (&found, expected) {
                (Err(why), Err(expected)) => return assert_eq!(*why, expected),
                (Ok(Some(_)), Ok(expected)) => expected,
                _ => panic!("{found:?}"),
            };
            let answer = Answer {
                status,
                body: Cow::from(body.as_bytes()),
                length: text.len(),
            };
            assert_eq!(found, Ok(Some(answer.clone())));
            for end in 0..text.len() {
                assert_eq!(read(&text.as_bytes()[..end]), Ok(None), "{end}");
            }
            let more = format!("{text}HTTP");
            assert_eq!(read(more.as_bytes()), Ok(Some(answer)));
        }
        let whole = |fields: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}");
        check(&whole("Content-Length: 3\r\n", "abc"), Ok((200, "abc")));
        check(&whole("A: b\r\ncontent-length:0\r\n", ""), Ok((200, "")));
        let chunked = "Transfer-Encoding: chunked\r\n";
        check(
            &whole(chunked, "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"),
            Ok((200, "abc0123456789")),
        );
        check(&whole(chunked, "0\r\n\r\n"), Ok((200, "")));
        check("HTTP/1.1 204 No Content\r\n\r\n", Ok((204, "")));
        check(
            &whole(chunked, "2\r\nabc\r\n"),
            Err("a chunk is longer than it says"),
        );
        check(&whole(chunked, "x\r\n"), Err("a chunk's size is no number"));
        check(
            &whole("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"),
            Err("the answer has two lengths"),
        );
        check(&whole("A: b\r\n", ""), Err("the answer has no length"));
        check(
            "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
            Err("the answer's first line is none of HTTP/1.1"),
        );
    }
}
