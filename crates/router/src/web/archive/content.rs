//! The bytes of a member, as its client takes them, and no more than it said that it has.

use std::fs::File;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Crc;
use flate2::read::DeflateDecoder;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::members::{Member, Part};
use crate::web::answer::Body;

/// What is read at a time.
const PIECE_BYTES: u64 = 64 * 1024;

/// A member on its way.
pub(super) struct Content {
    bytes: Box<dyn Read + Send>,
    left: u64,
    checksum: u32,
    read: Crc,
}

impl Content {
    pub(super) fn new(file: Arc<File>, member: &Member) -> Self {
        let part = Part::new(file, member.offset, member.stored_bytes);
        Self {
            bytes: match member.is_deflated {
                true => Box::new(DeflateDecoder::new(part)),
                false => Box::new(part),
            },
            left: member.bytes,
            checksum: member.checksum,
            read: Crc::new(),
        }
    }

    pub(super) fn body(self) -> Body {
        self.boxed_unsync()
    }

    /// All of it.
    pub(super) fn whole(mut self) -> io::Result<Bytes> {
        let mut whole = Vec::new();
        while self.left > 0 {
            whole.extend_from_slice(&self.piece()?);
        }
        Ok(whole.into())
    }

    /// The next piece; after the last it is what it said to be.
    fn piece(&mut self) -> io::Result<Bytes> {
        let mut piece = vec![0; self.left.min(PIECE_BYTES) as usize];
        self.bytes.read_exact(&mut piece)?;
        self.left -= piece.len() as u64;
        self.read.update(&piece);
        if self.left == 0 && self.read.sum() != self.checksum {
            return Err(io::Error::other("a member is not what its checksum says"));
        }
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
