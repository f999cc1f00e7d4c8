//! Traces: the messages of one connection as lines of JSON, for an operator. A trace is bounded in number, bytes and time,
//! and ends if it is not read.
//!
//! ```text
//! connection ─tap─▶ Trace::push (one line for each message) ─▶ Trace::read (by its number, in Traces)
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crosstie_auth::wamp::rfc3339;
use crosstie_config::{Json, is_secret};
use crosstie_transport::{Connection, Tap};
use parking_lot::Mutex;
use tracing::info;

/// The bounds of a trace, and its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    pub messages_max: u64,
    /// Of all lines together.
    pub bytes_max: u64,
    pub within: Duration,
    /// Whether arguments, headers and bodies are shown.
    pub has_payload: bool,
}

/// Bytes of lines that wait for a reader. Further messages are counted as missing.
const WAITING_BYTES_MAX: usize = 4 << 20;

/// A trace that is not read for so long ends: its reader has gone.
const UNREAD_MAX: Duration = Duration::from_secs(10);

/// How often each trace is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Maximum number of traces at a time.
const TRACES_MAX: usize = 16;

/// The text in the place of a secret.
pub const REDACTED: &str = "(redacted)";

/// Keys whose values are secrets beside those of a configuration, in any dictionary of a message.
const SECRETS: [&str; 7] = [
    "authextra",
    "authorization",
    "challenge",
    "cookie",
    "pubkey",
    "session_key",
    "signature",
];

/// A longer message is shown by its size alone: to parse it would take long, and many times its memory.
pub const SHOWN_BYTES_MAX: usize = 64 * 1024;

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    Received,
    Sent,
}

/// One trace.
pub struct Trace {
    pub options: TraceOptions,
    begun: Instant,
    connection: Weak<Connection>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    lines: VecDeque<String>,
    waiting_bytes: usize,
    messages: u64,
    bytes: u64,
    /// Messages without a line since the last one that has one.
    missing: u64,
    read: Instant,
    ended: Option<&'static str>,
}

/// The lines for a reader.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    pub lines: Vec<String>,
    /// Why there will be no more.
    pub ended: Option<&'static str>,
    /// Messages before the end of which there are no lines.
    pub missing: u64,
}

impl Trace {
    /// Begins a trace of that connection, whose tap `tap` makes. `None` if the connection is traced already, or has no
    /// socket.
    pub fn begin<T: Tap + 'static>(
        connection: &Arc<Connection>,
        options: TraceOptions,
        tap: impl FnOnce(Arc<Self>) -> T,
    ) -> Option<Arc<Self>> {
        let now = Instant::now();
        let trace = Arc::new(Self {
            options,
            begun: now,
            connection: Arc::downgrade(connection),
            state: Mutex::new(State {
                lines: VecDeque::new(),
                waiting_bytes: 0,
                messages: 0,
                bytes: 0,
                missing: 0,
                read: now,
                ended: None,
            }),
        });
        let tap = tap(Arc::clone(&trace));
        connection.set_tap(Some(Arc::new(tap))).then_some(trace)
    }

    /// Whether it has ended, perhaps just now: nothing more is to be made for it.
    pub fn has_ended(&self) -> bool {
        let mut state = self.state.lock();
        state.ended.is_some() || self.ends(&mut state, Instant::now())
    }

    /// Adds a message of so many bytes; `tell` adds what there is to tell about it, unless it is too long.
    pub fn push(&self, direction: Direction, bytes: usize, tell: impl FnOnce(&mut Json)) {
        if self.has_ended() || !self.takes_line() {
            return;
        }
        let mut line = Json::default();
        let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix_ms = unix_ms.map_or(0, |since| since.as_millis() as u64);
        line["time"] = rfc3339(unix_ms).into();
        line["direction"] = match direction {
            Direction::Received => "received".into(),
            Direction::Sent => "sent".into(),
        };
        line["bytes"] = bytes.into();
        match bytes > SHOWN_BYTES_MAX {
            true => line["too_long"] = true.into(),
            // Outside of the lock, for which the reader waits.
            false => tell(&mut line),
        }
        let mut state = self.state.lock();
        if state.ended.is_some() {
            return;
        }
        state.messages += 1;
        match mem::take(&mut state.missing) {
            0 => {}
            missing => line["missing_before"] = missing.into(),
        }
        let line = line.to_string();
        state.bytes += line.len() as u64;
        state.waiting_bytes += line.len();
        state.lines.push_back(line);
        self.ends(&mut state, Instant::now());
    }

    /// Whether there is room for another line; otherwise its message is counted.
    fn takes_line(&self) -> bool {
        let mut state = self.state.lock();
        let has_room = state.waiting_bytes < WAITING_BYTES_MAX;
        if !has_room {
            state.messages += 1;
            state.missing += 1;
        }
        has_room
    }

    /// Ends the trace if a bound is reached; returns whether it has ended.
    fn ends(&self, state: &mut State, now: Instant) -> bool {
        let TraceOptions {
            messages_max,
            bytes_max,
            within,
            ..
        } = self.options;
        let why = if state.messages >= messages_max {
            "messages"
        } else if state.bytes >= bytes_max {
            "bytes"
        } else if now.saturating_duration_since(self.begun) >= within {
            "time"
        } else if now.saturating_duration_since(state.read) >= UNREAD_MAX {
            "unread"
        } else {
            return false;
        };
        self.end(state, why);
        true
    }

    fn end(&self, state: &mut State, why: &'static str) {
        if state.ended.is_none() {
            state.ended = Some(why);
            info!("A trace has ended: {why}");
            if let Some(connection) = self.connection.upgrade() {
                connection.set_tap(None);
            }
        }
    }

    /// Ends the trace.
    pub fn stop(&self, why: &'static str) {
        self.end(&mut self.state.lock(), why);
    }

    /// Takes the lines that wait.
    fn read(&self) -> Part {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.read = now;
        if state.ended.is_none() && !self.ends(&mut state, now) {
            let connection = self.connection.upgrade();
            if connection.is_none_or(|connection| connection.is_closed()) {
                self.end(&mut state, "closed");
            }
        }
        state.waiting_bytes = 0;
        Part {
            lines: mem::take(&mut state.lines).into(),
            ended: state.ended,
            missing: match state.ended {
                Some(_) => mem::take(&mut state.missing),
                None => 0,
            },
        }
    }

    /// Ends it if its time is over, or it is not read. Returns whether it is of no use any more: it has ended, and is not
    /// read. Then its lines are dropped.
    fn is_over(&self) -> bool {
        let mut state = self.state.lock();
        let is_unread = state.read.elapsed() >= UNREAD_MAX;
        if state.ended.is_none() {
            self.ends(&mut state, Instant::now());
        }
        let is_over = state.ended.is_some() && is_unread;
        if is_over {
            state.lines = VecDeque::new();
            state.waiting_bytes = 0;
        }
        is_over
    }
}

/// Looks at a trace until it is of no use any more: a quiet connection has no message at which its time would end.
async fn watch(trace: Weak<Trace>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        match trace.upgrade() {
            Some(trace) if !trace.is_over() => {}
            _ => return,
        }
    }
}

/// The traces of a node, by number.
#[derive(Default)]
pub struct Traces {
    last: u64,
    traces: BTreeMap<u64, Arc<Trace>>,
}

impl Traces {
    /// Whether another trace may begin. Removes those that are over.
    pub fn has_room(&mut self) -> bool {
        self.traces.retain(|_, trace| !trace.is_over());
        self.traces.len() < TRACES_MAX
    }

    /// Adds a trace; returns its number. Needs a tokio context.
    pub fn add(&mut self, trace: Arc<Trace>) -> u64 {
        tokio::spawn(watch(Arc::downgrade(&trace)));
        self.last += 1;
        self.traces.insert(self.last, trace);
        self.last
    }

    /// Takes the lines of a trace; `None` if there is no such trace. One that has ended is removed.
    pub fn read(&mut self, number: u64) -> Option<Part> {
        let part = self.traces.get(&number)?.read();
        if part.ended.is_some() {
            self.traces.remove(&number);
        }
        Some(part)
    }

    /// Ends a trace; returns whether there was one.
    pub fn end(&mut self, number: u64) -> bool {
        let Some(trace) = self.traces.remove(&number) else {
            return false;
        };
        trace.stop("requested");
        true
    }
}

/// Replaces the secrets in a value, at any depth, also in texts that are JSON.
pub fn redact(value: &mut Json) {
    match value {
        Json::Array(values) => values.iter_mut().for_each(redact),
        Json::Object(entries) => {
            for (key, value) in entries {
                match is_secret_here(key) && !value.is_null() {
                    true => *value = REDACTED.into(),
                    false => redact(value),
                }
            }
        }
        Json::String(text) => {
            if let Some(redacted) = redacted(text) {
                *text = redacted;
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// A text that is JSON, without its secrets; `None` if the text has none, or is no dictionary or list.
pub fn redacted(text: &str) -> Option<String> {
    let begins = text.trim_start().as_bytes().first();
    if !matches!(begins, Some(b'{' | b'[')) {
        return None;
    }
    let before: Json = text.parse().ok()?;
    let mut after = before.clone();
    redact(&mut after);
    (after != before).then(|| after.to_string())
}

fn is_secret_here(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    is_secret(&lower) || SECRETS.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_redacted_at_any_depth() {
        for (value, expected) in [
            (
                r#"[1,{"Ticket":"x","a":[{"password":{"b":1},"c":"ticket"}]}]"#,
                r#"[1,{"Ticket":"(redacted)","a":[{"password":"(redacted)","c":"ticket"}]}]"#,
            ),
            (
                r#"{"access_token":"t","client_secret":"s","api_key":"k","set-cookie":"c","salt":"s","stored-key":"k"}"#,
                r#"{"access_token":"(redacted)","client_secret":"(redacted)","api_key":"(redacted)","set-cookie":"(redacted)","salt":"(redacted)","stored-key":"(redacted)"}"#,
            ),
            (
                r#"{"oslo.message":"{\"_context_auth_token\": \"t\", \"args\": {\"b\": 1}}"}"#,
                r#"{"oslo.message":"{\"_context_auth_token\":\"(redacted)\",\"args\":{\"b\":1}}"}"#,
            ),
            (r#"{"a":"{b"}"#, r#"{"a":"{b"}"#),
        ] {
            let mut value: Json = value.parse().expect("JSON");
            redact(&mut value);
            assert_eq!(value.to_string(), expected);
        }
    }
}
