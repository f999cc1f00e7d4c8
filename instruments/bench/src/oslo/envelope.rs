//! Requests and replies in oslo.messaging's form: JSON within JSON, with Python's spaces. They are made once; their
//! only difference is a field of 32 digits that is overwritten, so that neither end spends its time on JSON.

/// One body, to be sent repeatedly.
#[derive(Clone, Debug)]
pub(super) struct Body {
    bytes: Vec<u8>,
    message_id: Option<usize>,
    unique_id: usize,
}

/// Digits of an id: 16 of the round, 16 of the number within it.
pub(super) const ID_DIGITS: usize = 32;

/// The placeholder of an id.
const BLANK: &str = "00000000000000000000000000000000";

/// In an id's first half: this message is the last, and its number is the count of those before.
pub(super) const LAST: u64 = u64::MAX;

/// The arguments of the document's `echo a`, and its server's return value.
const ARGUMENTS: &str = r#"{"a": null}"#;
const CONTEXT: &str = r#""_context_application": "rpc-client", "_context_client_timeout": null"#;
const RESULT: &str = r#"{"method": "echo", "context": {"application": "rpc-client", "client_timeout": null}, "args": {"a": null}}"#;

impl Body {
    /// A request; `reply_to` is the queue of a caller, a cast has none.
    pub(super) fn request(reply_to: Option<&str>) -> Self {
        let answer = reply_to.map_or_else(String::new, |queue| {
            format!(r#", "_msg_id": "{BLANK}", "_reply_q": "{queue}", "_timeout": null"#)
        });
        Self::new(&format!(
            r#"{{"method": "echo", "args": {ARGUMENTS}{answer}, "_unique_id": "{BLANK}", {CONTEXT}}}"#
        ))
    }

    pub(super) fn reply() -> Self {
        Self::new(&format!(
            r#"{{"result": {RESULT}, "failure": null, "ending": true, "_msg_id": "{BLANK}", "_unique_id": "{BLANK}"}}"#
        ))
    }

    fn new(message: &str) -> Self {
        let message = serde_json::Value::from(message).to_string();
        let bytes = format!(r#"{{"oslo.version": "2.0", "oslo.message": {message}}}"#).into_bytes();
        Self {
            message_id: find(&bytes, MESSAGE_ID),
            unique_id: find(&bytes, UNIQUE_ID).unwrap_or_default(),
            bytes,
        }
    }

    /// With the ids of one round and number.
    pub(super) fn numbered(&mut self, round: u64, number: u64) -> &[u8] {
        let id = id(round, number);
        if let Some(at) = self.message_id {
            self.bytes[at..at + ID_DIGITS].copy_from_slice(&id);
        }
        self.bytes[self.unique_id..self.unique_id + ID_DIGITS].copy_from_slice(&id);
        &self.bytes
    }

    /// As a reply to the request with that id.
    pub(super) fn answering(&mut self, message_id: &[u8; ID_DIGITS]) -> &[u8] {
        if let Some(at) = self.message_id {
            self.bytes[at..at + ID_DIGITS].copy_from_slice(message_id);
        }
        self.bytes[self.unique_id..self.unique_id + ID_DIGITS].copy_from_slice(message_id);
        &self.bytes
    }
}

const MESSAGE_ID: &[u8] = br#"\"_msg_id\": \""#;
const UNIQUE_ID: &[u8] = br#"\"_unique_id\": \""#;
const REPLY_QUEUE: &[u8] = br#"\"_reply_q\": \""#;

/// Offsets of fields in received bodies: most often those of the last one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places {
    message_id: usize,
    unique_id: usize,
    reply_queue: usize,
}

impl Places {
    /// The id that a call's reply names.
    pub(super) fn message_id(&mut self, body: &[u8]) -> Option<[u8; ID_DIGITS]> {
        let at = place(body, MESSAGE_ID, &mut self.message_id)?;
        body.get(at..at + ID_DIGITS)?.try_into().ok()
    }

    /// The round and the number of a message.
    pub(super) fn number(&mut self, body: &[u8]) -> Option<(u64, u64)> {
        let at = place(body, UNIQUE_ID, &mut self.unique_id)?;
        let half = |at: usize| {
            let digits = body.get(at..at + ID_DIGITS / 2)?;
            u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        };
        Some((half(at)?, half(at + ID_DIGITS / 2)?))
    }

    /// The queue for a call's reply.
    pub(super) fn reply_queue<'b>(&mut self, body: &'b [u8]) -> Option<&'b str> {
        let at = place(body, REPLY_QUEUE, &mut self.reply_queue)?;
        let rest = &body[at..];
        let end = rest.iter().position(|byte| *byte == b'\\')?;
        std::str::from_utf8(&rest[..end]).ok()
    }
}

/// The offset of the value behind `name`.
fn place(body: &[u8], name: &[u8], last: &mut usize) -> Option<usize> {
    let is_there = last
        .checked_sub(name.len())
        .is_some_and(|at| body.get(at..*last) == Some(name));
    if !is_there {
        *last = find(body, name)?;
    }
    Some(*last)
}

fn find(body: &[u8], name: &[u8]) -> Option<usize> {
    let at = body.windows(name.len()).position(|window| window == name)?;
    Some(at + name.len())
}

fn id(round: u64, number: u64) -> [u8; ID_DIGITS] {
    let mut id = [0; ID_DIGITS];
    let (first, second) = id.split_at_mut(ID_DIGITS / 2);
    hexadecimal(round, first);
    hexadecimal(number, second);
    id
}

fn hexadecimal(mut value: u64, digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(value & 15) as usize];
        value >>= 4;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn inner(body: &[u8]) -> Value {
        let outer: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(outer["oslo.version"], "2.0");
        serde_json::from_str(outer["oslo.message"].as_str().unwrap()).unwrap()
    }

    #[test]
    fn a_call_names_its_reply_queue() {
        let mut request = Body::request(Some("reply_1"));
        let mut places = Places::default();
        for number in [0x1f, 0x20] {
            let body = request.numbered(0xab, number);
            let message = inner(body);
            assert_eq!(message["method"], "echo");
            assert_eq!(message["_reply_q"], "reply_1");
            assert_eq!(message["_msg_id"], format!("00000000000000ab{number:016x}"));
            assert_eq!(places.number(body), Some((0xab, number)));
            assert_eq!(places.reply_queue(body), Some("reply_1"));
            let id = places.message_id(body).unwrap();
            let mut reply = Body::reply();
            let answer = inner(reply.answering(&id));
            assert_eq!(answer["_msg_id"], message["_msg_id"]);
            assert_eq!(answer["ending"], true);
            assert_eq!(answer["result"]["method"], "echo");
        }
    }

    #[test]
    fn a_cast_has_no_reply() {
        let mut request = Body::request(None);
        let body = request.numbered(LAST, 7);
        let mut places = Places::default();
        assert_eq!(places.message_id(body), None);
        assert_eq!(places.number(body), Some((LAST, 7)));
        assert!(inner(body).get("_timeout").is_none());
        assert_eq!(places.number(b"{}"), None);
    }
}
