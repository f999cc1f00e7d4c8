//! A connection's task: distributes input to its receivers, and writes output.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::{io, mem};

use crosstie_nats::{Decoded, Denial, Limits, Operation, decode, encode};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf,
};
use tokio::time::Instant;

use crate::connection::PING_AFTER;
use crate::greeting::LINE_BYTES_MAX;
use crate::message::Message;
use crate::shared::{INBOX, Shared};

/// A connection's byte stream: TCP, or TLS on it.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<W: AsyncRead + AsyncWrite + Send + Unpin> Wire for W {}

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;

/// Maximum headers of a message beside its payload: those of an entry are about two hundred bytes.
const HEADER_BYTES_MAX: usize = 64 * 1024;

/// Waits until the server has accepted the credentials. Returns the bytes behind that.
pub(crate) async fn taken(stream: &mut Box<dyn Wire>, shared: &Shared) -> Result<Vec<u8>, String> {
    let limits = limits(shared);
    let mut input = Vec::new();
    loop {
        let mut consumed = 0;
        while let Decoded::Operation {
            operation,
            consumed: more,
        } = decode(&input[consumed..], &limits).map_err(|e| format!("NATS: {e}"))?
        {
            consumed += more;
            match operation {
                Operation::Pong => return Ok(input.split_off(consumed)),
                Operation::Error(text) => return Err(text.to_owned()),
                _ => {}
            }
        }
        input.drain(..consumed);
        let read = stream.read_buf(&mut input).await;
        if read.map_err(|e| said(&e))? == 0 {
            return Err("closed by the server".to_owned());
        }
    }
}

/// Runs the connection. Returns the reason of its end.
pub(crate) async fn run(
    stream: Box<dyn Wire>,
    input: Vec<u8>,
    shared: &Arc<Shared>,
    silence_max: Duration,
) -> String {
    let (reader, writer) = tokio::io::split(stream);
    tokio::select! {
        why = read(reader, input, shared) => why,
        why = write(writer, shared) => why,
        why = listen(shared, silence_max) => why,
    }
}

fn limits(shared: &Shared) -> Limits {
    Limits {
        line_bytes_max: LINE_BYTES_MAX,
        message_bytes_max: shared.greeting.payload_bytes_max + HEADER_BYTES_MAX,
    }
}

async fn read(mut reader: ReadHalf<Box<dyn Wire>>, mut input: Vec<u8>, shared: &Shared) -> String {
    let limits = limits(shared);
    let mut error = None;
    loop {
        let mut consumed = 0;
        let mut wanted = 0;
        while consumed < input.len() {
            match decode(&input[consumed..], &limits) {
                Ok(Decoded::Operation {
                    operation,
                    consumed: more,
                }) => {
                    consumed += more;
                    handle(operation, shared, &mut error);
                }
                Ok(Decoded::More { wanted: more }) => {
                    wanted = more;
                    break;
                }
                Err(e) => return format!("NATS: {e}"),
            }
        }
        input.drain(..consumed);
        input.reserve(wanted.saturating_sub(input.len()).max(READ_BYTES));
        match reader.read_buf(&mut input).await {
            Ok(0) => return error.unwrap_or_else(|| "closed by the server".to_owned()),
            Ok(_) => *shared.heard.lock() = Instant::now(),
            Err(e) => return error.unwrap_or_else(|| said(&e)),
        }
    }
}

/// A server that is killed ends TLS without a close notification.
fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "closed by the server".to_owned(),
        _ => error.to_string(),
    }
}

fn handle(operation: Operation<'_>, shared: &Shared, error: &mut Option<String>) {
    match operation {
        Operation::Message(message) => {
            let mut state = shared.state.lock();
            let key = match message.sid {
                INBOX => answered(&shared.inbox, message.subject),
                sid => Some(sid),
            };
            let Some(receiver) = key.and_then(|key| state.receivers.get(&key)) else {
                return;
            };
            let is_taken = receiver.take(Message {
                subject: message.subject.to_owned(),
                reply: message.reply.map(str::to_owned),
                headers: message.headers.to_vec(),
                payload: message.payload.to_vec(),
            });
            if !is_taken && let Some(key) = key {
                state.receivers.remove(&key);
                if key == message.sid {
                    encode::unsubscribe(key, &mut state.out);
                    drop(state);
                    shared.wake.notify_one();
                }
            }
        }
        Operation::Ping => {
            encode::pong(&mut shared.state.lock().out);
            shared.wake.notify_one();
        }
        // The request gets no answer; after other errors the server closes the connection.
        Operation::Error(text) if let Some(denial) = Denial::read(text) => {
            *shared.denied.lock() = Some(text.to_owned());
            if let Denial::Subscribe(pattern) = denial {
                let state = shared.state.lock();
                let denied = state.receivers.values().filter(|r| r.pattern == pattern);
                denied.for_each(|r| r.is_denied.store(true, Ordering::Relaxed));
            }
        }
        Operation::Error(text) => *error = Some(text.to_owned()),
        Operation::Info(_) => {
            shared.tidings.fetch_add(1, Ordering::Relaxed);
        }
        Operation::Ok | Operation::Pong => {}
    }
}

/// The number of the answered request: the last token of the subject.
fn answered(inbox: &str, subject: &str) -> Option<u64> {
    let number = subject.strip_prefix(inbox)?.strip_prefix('.')?;
    number.parse().ok()
}

async fn write(mut writer: WriteHalf<Box<dyn Wire>>, shared: &Shared) -> String {
    loop {
        let (out, is_closing) = {
            let mut state = shared.state.lock();
            (mem::take(&mut state.out), state.is_closing)
        };
        if !out.is_empty() {
            if let Err(e) = writer.write_all(&out).await {
                return e.to_string();
            }
            // TLS buffers short writes.
            if let Err(e) = writer.flush().await {
                return e.to_string();
            }
            continue;
        }
        if is_closing {
            return "nobody needs it any more".to_owned();
        }
        shared.wake.notified().await;
    }
}

/// Pings a silent server, and gives it up if it stays silent.
async fn listen(shared: &Shared, silence_max: Duration) -> String {
    let ping_after = PING_AFTER.min(silence_max / 4);
    loop {
        tokio::time::sleep(ping_after).await;
        let silence = shared.heard.lock().elapsed();
        if silence >= silence_max {
            return format!("it has said nothing for {} ms", silence.as_millis());
        }
        if silence >= ping_after {
            encode::ping(&mut shared.state.lock().out);
            shared.wake.notify_one();
        }
    }
}
