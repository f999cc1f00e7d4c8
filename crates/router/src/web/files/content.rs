//! The bytes of a file, read as its client takes them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::web::answer::{self, Body};

/// What is read at a time, and of one file at once.
const PIECE_BYTES: u64 = 64 * 1024;

/// A part of a file. A small one is read at once.
pub(super) fn body(file: File, first: u64, length: u64) -> io::Result<Body> {
    let mut content = Content {
        file,
        next: first,
        left: length,
    };
    if length <= PIECE_BYTES {
        return Ok(answer::full(content.piece()?));
    }
    Ok(content.boxed_unsync())
}

struct Content {
    file: File,
    next: u64,
    left: u64,
}

impl Content {
    fn piece(&mut self) -> io::Result<Bytes> {
        let length = self.left.min(PIECE_BYTES);
        let mut piece = vec![0; length as usize];
        // A file that has become shorter meanwhile has not what its answer began with.
        self.file.read_exact_at(&mut piece, self.next)?;
        self.next += length;
        self.left -= length;
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
        Poll::Ready(Some(self.piece().map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
