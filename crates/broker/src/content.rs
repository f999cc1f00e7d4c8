//! A message that comes in several frames (section 2.3.5.2): the method, its header, its body.

use std::sync::Arc;

use crosstie_amqp::frame::{self, Decoded, Frame, FrameKind};
use crosstie_amqp::method::{BASIC_CLASS, BasicPublish};
use crosstie_amqp::{ContentHeader, Properties, PropertiesError, ReplyCode};
use crosstie_queues::{ContentAssembly, Fault, MessageContent};

const PUBLISH: (u16, u16) = (BASIC_CLASS, 40);

/// A message with its header and its body in one frame each, directly behind its method.
pub(super) struct Whole<'a> {
    pub(super) properties: Properties<'a>,
    pub(super) body: &'a [u8],
    /// Total size of these frames in bytes.
    pub(super) consumed: usize,
}

/// The frames behind a method with content.
pub(super) enum Lookahead<'a> {
    Whole(Whole<'a>),
    /// A whole message of which a part has arrived; `wanted` is its full size in bytes.
    Incomplete {
        wanted: usize,
    },
    /// Anything else, such as a body of several frames: read frame by frame.
    Other,
}

/// Looks for a message's content at the front of `input`. Nearly all messages are found here and passed on without a
/// copy; everything unusual is left to the frame-by-frame reader.
pub(super) fn look_ahead(
    input: &[u8],
    channel: u16,
    frame_bytes_max: u32,
    message_bytes_max: usize,
) -> Lookahead<'_> {
    let next = |at: usize, expected| match frame::decode(&input[at..], frame_bytes_max) {
        Ok(Decoded::Frame { frame, consumed })
            if frame.kind == expected && frame.channel == channel =>
        {
            Ok((frame.payload, at + consumed))
        }
        Ok(Decoded::Incomplete { wanted }) => Err(Lookahead::Incomplete {
            wanted: at + wanted,
        }),
        _ => Err(Lookahead::Other),
    };
    let (header, header_end) = match next(0, FrameKind::Header) {
        Ok(found) => found,
        Err(lookahead) => return lookahead,
    };
    let Ok(header) = ContentHeader::decode(header) else {
        return Lookahead::Other;
    };
    let whole = |body, consumed| {
        Lookahead::Whole(Whole {
            properties: header.properties,
            body,
            consumed,
        })
    };
    let frame_body_max = u64::from(frame_bytes_max) - frame::OVERHEAD_BYTES as u64;
    match header.body_bytes {
        0 => whole(&[], header_end),
        bytes if bytes > frame_body_max || bytes > message_bytes_max as u64 => Lookahead::Other,
        bytes => match next(header_end, FrameKind::Body) {
            Ok((body, end)) if body.len() as u64 == bytes => whole(body, end),
            Ok(_) => Lookahead::Other,
            Err(lookahead) => lookahead,
        },
    }
}

/// A message that is assembled frame by frame.
pub(super) struct Assembly {
    content: ContentAssembly,
    pub(super) mandatory: bool,
    pub(super) immediate: bool,
    has_header: bool,
    /// The time of the last sufficient progress, and the body bytes at that time.
    since_s: u32,
    since_bytes: usize,
    /// The message, whose publication waits for an answer, and its memory in bytes.
    complete: Option<(Arc<MessageContent>, usize)>,
}

/// Minimum body bytes that must arrive within the timeout of an incomplete message.
const PROGRESS_BYTES_MIN: usize = 64 * 1024;

impl Assembly {
    pub(crate) fn new(publish: &BasicPublish<'_>, now_s: u32) -> Self {
        Self {
            content: ContentAssembly::new(publish.exchange, publish.routing_key),
            mandatory: publish.mandatory,
            immediate: publish.immediate,
            has_header: false,
            since_s: now_s,
            since_bytes: 0,
            complete: None,
        }
    }

    /// A complete message whose last frame will come again.
    pub(super) fn again(
        content: Arc<MessageContent>,
        bytes: usize,
        mandatory: bool,
        immediate: bool,
        now_s: u32,
    ) -> Self {
        Self {
            content: ContentAssembly::new("", ""),
            mandatory,
            immediate,
            has_header: true,
            since_s: now_s,
            since_bytes: 0,
            complete: Some((content, bytes)),
        }
    }

    /// Takes the next frame. Returns whether the message is complete.
    pub(super) fn handle(
        &mut self,
        frame: &Frame<'_>,
        message_bytes_max: usize,
        now_s: u32,
        timeout_s: u32,
    ) -> Result<bool, Fault> {
        if self.complete.is_some() {
            return Ok(true);
        }
        if now_s.saturating_sub(self.since_s) >= timeout_s {
            if self.content.body_bytes() - self.since_bytes < PROGRESS_BYTES_MIN {
                let text =
                    format!("less than {PROGRESS_BYTES_MIN} bytes of a message in {timeout_s} s");
                return Err(Fault::in_method(
                    ReplyCode::PreconditionFailed,
                    PUBLISH,
                    text,
                ));
            }
            self.forgive(now_s);
        }
        match (self.has_header, frame.kind) {
            (false, FrameKind::Header) => self.handle_header(frame.payload, message_bytes_max),
            (false, _) => Err(unexpected(&format!(
                "expected content header for class {BASIC_CLASS}, got non content header frame \
                 instead"
            ))),
            (true, FrameKind::Body) => self.handle_body(frame.payload),
            (true, _) => Err(unexpected(
                "expected content body, got non content body frame instead",
            )),
        }
    }

    /// The complete message, in the form that queues store.
    pub(super) fn finish(self) -> Arc<MessageContent> {
        match self.complete {
            Some((content, _)) => content,
            None => Arc::new(self.content.finish()),
        }
    }

    /// The time of the last sufficient progress.
    pub(super) fn since_s(&self) -> u32 {
        self.since_s
    }

    /// Restarts the timeout from now.
    pub(super) fn forgive(&mut self, now_s: u32) {
        self.since_s = now_s;
        self.since_bytes = self.content.body_bytes();
    }

    /// Bytes of memory held, which never decrease.
    pub(crate) fn bytes(&self) -> usize {
        match &self.complete {
            Some((_, bytes)) => *bytes,
            None => self.content.memory_bytes(),
        }
    }

    fn handle_header(&mut self, payload: &[u8], message_bytes_max: usize) -> Result<bool, Fault> {
        let header = ContentHeader::decode(payload).map_err(|e| header_fault(&e))?;
        let bytes = header.body_bytes;
        if bytes > message_bytes_max as u64 {
            let text = format!(
                "message size {bytes} is larger than configured max size {message_bytes_max}"
            );
            return Err(Fault::in_method(
                ReplyCode::PreconditionFailed,
                PUBLISH,
                text,
            ));
        }
        self.has_header = true;
        self.content.begin_body(header.properties, bytes as usize);
        Ok(bytes == 0)
    }

    fn handle_body(&mut self, payload: &[u8]) -> Result<bool, Fault> {
        let missing = self.content.missing_bytes();
        if payload.len() > missing {
            let text = format!(
                "a content body frame of {} bytes, expected at most {missing}",
                payload.len()
            );
            return Err(Fault::in_method(ReplyCode::FrameError, PUBLISH, text));
        }
        self.content.append(payload);
        Ok(payload.len() == missing)
    }
}

fn header_fault(e: &PropertiesError) -> Fault {
    let code = match e {
        PropertiesError::Class { class_id } => {
            return unexpected(&format!(
                "expected content header for class {BASIC_CLASS}, got one for class {class_id} \
                 instead"
            ));
        }
        PropertiesError::Flags { .. } | PropertiesError::Read(_) => ReplyCode::SyntaxError,
    };
    Fault::in_method(code, PUBLISH, e.to_string())
}

fn unexpected(text: &str) -> Fault {
    Fault::in_method(ReplyCode::UnexpectedFrame, PUBLISH, text)
}
