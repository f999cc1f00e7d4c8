//! The WebSocket echo: the opening handshake, echoed messages, the closing handshake.

use std::sync::Arc;

use crosstie_transport::{Connection, Outcome, Protocol};
use crosstie_wamp::framing::websocket::{
    self, CloseFrame, Decoder, DecoderConfig, Deflater, HandshakeError, HeaderList, Opcode,
    Request, Role,
};
use crosstie_wamp::framing::{Framing, FramingError, Item};

use crate::serve::Serving;
use crate::streams::Connected;
use crate::{Testee, WebSocketOptions};

/// The server's side of one connection.
pub(crate) struct WebSocketEcho {
    connection: Arc<Connection>,
    serving: Arc<Serving>,
    state: State,
    fault: Option<Box<str>>,
}

enum State {
    Opening,
    Open(Box<Open>),
    /// Our Close was sent; later input is ignored.
    Closing,
}

struct Open {
    frames: Decoder,
    deflater: Option<Deflater>,
    _connected: Connected,
}

/// The step after the messages of one input.
#[derive(Default)]
enum Next {
    #[default]
    /// More input: the rest is incomplete.
    Receive,
    /// The rest, after the queue has been sent.
    Send,
    /// Nothing: the peer has closed, and been answered.
    End,
    /// Nothing: the peer violated the protocol.
    Close(FramingError),
}

/// The result of an input.
#[derive(Default)]
struct Answered {
    consumed: usize,
    messages: u64,
    /// Bytes of the messages.
    bytes: u64,
    next: Next,
}

/// Maximum number of queued answer bytes: a small input that inflates to much is not answered at once.
const ANSWERS_BYTES_MAX: usize = 1 << 20;

const FRAMING: Framing = Framing::WebSocketServer { batched: false };

impl WebSocketEcho {
    pub(crate) fn new(connection: &Arc<Connection>, serving: &Arc<Serving>) -> Self {
        Self {
            connection: Arc::clone(connection),
            serving: Arc::clone(serving),
            state: State::Opening,
            fault: None,
        }
    }

    /// The peer's fault, if any.
    pub(crate) fn into_fault(self) -> Option<Box<str>> {
        self.fault
    }

    /// Handles a request at the start of `input`; returns its length once it is complete.
    fn open(
        &mut self,
        input: &[u8],
        options: &WebSocketOptions,
    ) -> Result<Option<usize>, HandshakeError> {
        let Some((consumed, request)) = websocket::parse_request(input, websocket::HEAD_BYTES_MAX)?
        else {
            return Ok(None);
        };
        self.upgrade(&request, options)?;
        Ok(Some(consumed))
    }

    fn upgrade(
        &mut self,
        request: &Request<'_>,
        options: &WebSocketOptions,
    ) -> Result<(), HandshakeError> {
        let asked = request.upgrade()?;
        let agreed = match options.deflate {
            Some(deflate) => deflate.accept(&asked.extensions)?,
            None => None,
        };
        let (deflate, extensions) = agreed.unzip();
        // No subprotocol is supported, whichever are offered.
        let response =
            websocket::accept_response(asked.key, None, extensions.as_deref(), headers(options));
        let config = DecoderConfig {
            message_bytes_max: options.message_bytes_max,
            frame_bytes_max: options.frame_bytes_max,
            deflate,
            ..DecoderConfig::default()
        };
        self.say(&response);
        self.state = State::Open(Box::new(Open {
            frames: Decoder::new(Role::Server, config),
            deflater: deflate.map(Deflater::new),
            _connected: Connected::new(&self.serving.statistics),
        }));
        Ok(())
    }

    fn refuse(&mut self, e: HandshakeError, options: &WebSocketOptions) {
        let reason = e.to_string();
        self.say(&websocket::closing_response(
            e.status(),
            &reason,
            headers(options),
        ));
        self.fault = Some(reason.into());
        self.close();
    }

    fn say(&self, bytes: &[u8]) {
        // A lost connection shows to its reader.
        let _ = self.connection.append(|out| {
            out.extend_from_slice(bytes);
            Ok::<(), ()>(())
        });
    }

    /// Sends the queue, and gives the peer a moment to close its side: closing a socket with unread bytes would discard
    /// our last bytes.
    fn close(&mut self) {
        self.state = State::Closing;
        self.connection.finish();
        self.serving.close_later(&self.connection);
    }
}

/// The additional headers of responses.
fn headers(options: &WebSocketOptions) -> &'static HeaderList<'static> {
    const SERVER: (&str, &str) = ("Server", concat!("Crosstie/", env!("CARGO_PKG_VERSION")));
    match options.show_server_version {
        true => &[SERVER],
        false => &[],
    }
}

impl Open {
    /// Answers the complete frames of `input` by appending to `out`.
    fn answer(
        &mut self,
        input: &mut [u8],
        out: &mut Vec<u8>,
        options: &WebSocketOptions,
    ) -> Answered {
        let begun = out.len();
        let mut answered = Answered::default();
        loop {
            if out.len() - begun > ANSWERS_BYTES_MAX {
                answered.next = Next::Send;
                return answered;
            }
            let step = match self.frames.next(&mut input[answered.consumed..]) {
                Ok(step) => step,
                Err(e) => {
                    answered.next = Next::Close(e);
                    return answered;
                }
            };
            if step.consumed == 0 {
                return answered;
            }
            answered.consumed += step.consumed;
            match step.item {
                Some(Item::Message { bytes, text }) => {
                    answered.messages += 1;
                    answered.bytes += bytes.len() as u64;
                    match &mut self.deflater {
                        Some(deflater) => deflater.message(text, None, bytes, out),
                        None => websocket::message(text, None, bytes, out),
                    }
                }
                Some(Item::Ping(payload)) => FRAMING.pong(payload, out),
                Some(Item::Close(close)) => {
                    answer_close(close, options.echo_close, out);
                    answered.next = Next::End;
                    return answered;
                }
                Some(Item::Pong(_)) | None => {}
            }
        }
    }
}

/// With the peer's code, if it has one (RFC 6455 section 5.5.1).
fn answer_close(close: CloseFrame<'_>, with_reason: bool, out: &mut Vec<u8>) {
    let reason = if with_reason { close.reason } else { "" };
    match close.code {
        Some(code) => FRAMING.close(code, reason, out),
        None => websocket::raw_frame(Opcode::Close, true, false, None, &[], out),
    }
}

impl Protocol for WebSocketEcho {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        let serving = Arc::clone(&self.serving);
        let Testee::WebSocket(options) = &*serving.testee else {
            return Outcome::Close;
        };
        let mut consumed = 0;
        if matches!(self.state, State::Opening) {
            match self.open(input, options) {
                Ok(request) => consumed = request.unwrap_or(0),
                Err(e) => self.refuse(e, options),
            }
        }
        let mut answered = Answered::default();
        match &mut self.state {
            State::Opening => {}
            State::Open(_) if consumed == input.len() => {}
            State::Open(open) => {
                let appended = self.connection.append(|out| {
                    answered = open.answer(&mut input[consumed..], out, options);
                    if let Next::Close(e) = answered.next
                        && !options.fail_by_drop
                    {
                        FRAMING.close(e.close_code(), &e.to_string(), out);
                    }
                    Ok::<(), ()>(())
                });
                if appended.is_err() {
                    return Outcome::Close;
                }
                let statistics = &serving.statistics;
                statistics.add_echoed(answered.messages, answered.bytes);
            }
            State::Closing => answered.consumed = input.len(),
        }
        consumed += answered.consumed;
        let rest = input.len() - consumed;
        match answered.next {
            // Within a text one more byte than there is suffices, not the whole frame: text is refused at its first
            // wrong byte.
            Next::Receive => {
                return Outcome::Hold {
                    consumed,
                    wanted: rest + 1,
                };
            }
            Next::Send => {
                return Outcome::Hold {
                    consumed,
                    wanted: 0,
                };
            }
            Next::End if rest == 0 => return Outcome::Close,
            Next::End => {}
            Next::Close(e) => {
                self.fault = Some(e.to_string().into());
                if options.fail_by_drop {
                    return Outcome::Close;
                }
            }
        }
        self.close();
        Outcome::consumed(input.len())
    }
}
