//! A script's input and output, each at the speed of the slower side.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use crosstie_web::cgi::{self, HEAD_BYTES_MAX, Head};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep};

use super::{Body, Failure, Input};
use crate::passage::Passing;
use crate::places::Place;
use crate::programs::Running;

/// Bytes read at a time.
const PIECE_BYTES: usize = 16 * 1024;
/// A script's time to exit after the end of its output.
const LAST_WORDS_MAX: Duration = Duration::from_secs(5);

/// A running script, and its output.
pub(super) struct Output {
    stdout: pipe::Receiver,
    /// Read and not forwarded yet.
    begun: BytesMut,
    held: Option<Held>,
    deadline: Pin<Box<Sleep>>,
}

/// Resources that live as long as the script's answer.
struct Held {
    running: Box<dyn Running>,
    _feeding: Option<Feeding>,
    place: Place,
}

/// The task that writes the request's body to a script; ended on drop.
pub(super) struct Feeding(JoinHandle<()>);

impl Drop for Feeding {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Writes the request's body to a script. If the body breaks off, the client is gone, and so is the request.
pub(super) fn feed(mut body: Input, mut stdin: pipe::Sender) -> Feeding {
    Feeding(tokio::spawn(async move {
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(bytes) = frame.into_data() else {
                continue;
            };
            // A script may stop reading early.
            if stdin.write_all(&bytes).await.is_err() {
                return;
            }
        }
    }))
}

impl Output {
    pub(super) fn new(
        stdout: pipe::Receiver,
        running: Box<dyn Running>,
        feeding: Option<Feeding>,
        place: Place,
        deadline: Instant,
    ) -> Self {
        Self {
            stdout,
            begun: BytesMut::new(),
            held: Some(Held {
                running,
                _feeding: feeding,
                place,
            }),
            deadline: Box::pin(tokio::time::sleep_until(deadline)),
        }
    }

    /// The header at the beginning of the output.
    pub(super) async fn head(&mut self) -> Result<Head, Failure> {
        loop {
            match cgi::head(&self.begun) {
                Ok(Some(head)) => {
                    let _ = self.begun.split_to(head.bytes);
                    return Ok(head);
                }
                Ok(None) => {}
                Err(bad) => return Err(Failure::Bad(format!("no answer: {bad}"))),
            }
            self.begun.reserve(PIECE_BYTES.min(HEAD_BYTES_MAX));
            if self.stdout.read_buf(&mut self.begun).await? == 0 {
                return Err(self.ended().await);
            }
        }
    }

    /// Why a script's output ended.
    async fn ended(&mut self) -> Failure {
        let Some(held) = &mut self.held else {
            return Failure::Silent;
        };
        let ended = tokio::time::timeout(LAST_WORDS_MAX, held.running.ended()).await;
        let how = ended.unwrap_or_else(|_| "closed its output".to_owned());
        let said = self.begun.len();
        Failure::Bad(format!("no answer: {how}, after {said} bytes"))
    }

    /// The rest of the output.
    pub(super) fn body(self, silence_max: Duration) -> Body {
        Passing::body(self, (), Some(silence_max))
    }
}

impl Held {
    /// Lets a script whose output has ended exit; its place is freed afterwards.
    fn finish(self) {
        let Self {
            mut running, place, ..
        } = self;
        tokio::spawn(async move {
            let _ = tokio::time::timeout(LAST_WORDS_MAX, running.ended()).await;
            drop(running);
            drop(place);
        });
    }
}

impl HttpBody for Output {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        if this.held.is_none() {
            return Poll::Ready(None);
        }
        if !this.begun.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(this.begun.split().freeze()))));
        }
        if this.deadline.as_mut().poll(cx).is_ready() {
            this.held = None;
            let text = "the script exceeds its maximum run time";
            return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::TimedOut, text))));
        }
        let mut piece = vec![0; PIECE_BYTES];
        let mut buffer = ReadBuf::new(&mut piece);
        let read = tokio::io::AsyncRead::poll_read(Pin::new(&mut this.stdout), cx, &mut buffer);
        ready!(read)?;
        let length = buffer.filled().len();
        if length == 0 {
            if let Some(held) = this.held.take() {
                held.finish();
            }
            return Poll::Ready(None);
        }
        piece.truncate(length);
        Poll::Ready(Some(Ok(Frame::data(piece.into()))))
    }
}
