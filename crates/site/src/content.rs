//! The bytes of a file or a member, read at the speed of the client.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use crosstie_transport::Connection;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::answer::{self, Body};
use super::held::Held;

/// Bytes read at a time. Shorter contents are read at once.
const PIECE_BYTES: u64 = 64 * 1024;
/// A piece that is sent, and the next.
const HELD_BYTES: isize = 2 * PIECE_BYTES as isize;

/// An answer's body of that length. Short ones are read at once.
pub(super) fn body(
    connection: &Arc<Connection>,
    bytes: impl Read + Send + 'static,
    length: u64,
) -> io::Result<Body> {
    if length <= PIECE_BYTES {
        return whole(bytes, length).map(answer::full);
    }
    let content = Content {
        bytes: Box::new(bytes),
        left: length,
        _held: Held::of(connection, HELD_BYTES),
    };
    Ok(content.boxed_unsync())
}

/// Exactly that many bytes.
pub(super) fn whole(bytes: impl Read, length: u64) -> io::Result<Bytes> {
    // With room reserved, a file is read at once; otherwise in pieces that double, from 32 bytes on. The announced
    // length may be wrong.
    let mut whole = Vec::with_capacity(length.min(PIECE_BYTES) as usize);
    bytes.take(length).read_to_end(&mut whole)?;
    match whole.len() as u64 == length {
        true => Ok(whole.into()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A body in transit.
struct Content {
    bytes: Box<dyn Read + Send>,
    left: u64,
    _held: Held,
}

impl Content {
    fn piece(&mut self) -> io::Result<Bytes> {
        let mut piece = vec![0; self.left.min(PIECE_BYTES) as usize];
        // If the file has become shorter meanwhile, its answer cannot be completed.
        self.bytes.read_exact(&mut piece)?;
        self.left -= piece.len() as u64;
        Ok(piece.into())
    }
}

impl HttpBody for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let piece = self.piece();
        if piece.is_err() {
            self.left = 0;
        }
        Poll::Ready(Some(piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// A part of a file that several readers share.
#[derive(Clone)]
pub(super) struct Part {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Part {
    pub(super) fn new(file: Arc<File>, at: u64, bytes: u64) -> Self {
        Self {
            file,
            at,
            end: at.saturating_add(bytes),
        }
    }

    pub(super) fn whole(file: Arc<File>) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        Ok(Self::new(file, 0, bytes))
    }
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_sub(self.at);
        let length = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = self.file.read_at(&mut buffer[..length], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Part {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.end.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
