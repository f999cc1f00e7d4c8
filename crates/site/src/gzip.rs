//! Answers in gzip, compressed while they are sent.

use std::io::Write as _;
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use crosstie_transport::Connection;
use crosstie_web::coding;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderValue};
use hyper::{HeaderMap, Method, Response};

use crate::answer::{self, Body};
use crate::held::Held;

/// A shorter body stays as it is, as in RabbitMQ.
const BODY_BYTES_MIN: usize = 300;
/// Bytes compressed in one turn: some 0.5 ms.
const TURN_BYTES: usize = 64 * 1024;
/// Memory of a compressor: its window, hash tables and pending output.
const COMPRESSOR_BYTES: isize = 320 * 1024;

/// A client that accepts gzip.
pub struct Gzip(Arc<Connection>);

impl Gzip {
    /// `None` if the client does not accept gzip, or wants no body.
    pub fn of(method: &Method, headers: &HeaderMap, connection: &Arc<Connection>) -> Option<Self> {
        let accepted = headers.get(ACCEPT_ENCODING)?.to_str().ok()?;
        let takes = method != Method::HEAD && coding::takes_gzip(accepted);
        takes.then(|| Self(Arc::clone(connection)))
    }

    /// An answer of bytes in memory.
    pub fn whole(&self, bytes: Vec<u8>) -> Response<Body> {
        if bytes.len() < BODY_BYTES_MIN {
            return Response::new(answer::full(bytes));
        }
        if bytes.len() > TURN_BYTES {
            return self.parts(pieces(bytes.into()));
        }
        let mut encoder = encoder();
        // A vector takes everything.
        let coded = encoder.write_all(&bytes).and_then(|()| encoder.finish());
        coded_answer(answer::full(coded.unwrap_or_default()))
    }

    /// An answer whose parts are made while it is sent, each compressed in a turn of its own.
    pub fn parts(&self, parts: impl Iterator<Item = Vec<u8>> + Send + 'static) -> Response<Body> {
        let coded = Coded {
            parts,
            encoder: Some(encoder()),
            is_turn_over: false,
            _held: Held::of(&self.0, COMPRESSOR_BYTES),
        };
        coded_answer(answer::parts(Box::new(coded)))
    }
}

fn encoder() -> GzEncoder<Vec<u8>> {
    GzEncoder::new(Vec::new(), Compression::fast())
}

fn coded_answer(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response
}

/// A body in pieces, each for one turn.
fn pieces(mut bytes: Bytes) -> impl Iterator<Item = Vec<u8>> + Send {
    std::iter::from_fn(move || {
        let piece = bytes.get(..bytes.len().min(TURN_BYTES))?.to_vec();
        bytes.advance(piece.len());
        (!piece.is_empty()).then_some(piece)
    })
}

/// The compressed parts. An empty one ends a turn of the thread.
struct Coded<P, H> {
    parts: P,
    /// `None` after the last part.
    encoder: Option<GzEncoder<Vec<u8>>>,
    is_turn_over: bool,
    /// Memory on the account of the connection.
    _held: H,
}

impl<P: Iterator<Item = Vec<u8>>, H> Iterator for Coded<P, H> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if std::mem::take(&mut self.is_turn_over) {
            return Some(Vec::new());
        }
        let mut encoder = self.encoder.take()?;
        let Some(part) = self.parts.next() else {
            return encoder.finish().ok();
        };
        // A vector takes everything.
        let _ = encoder.write_all(&part);
        let coded = std::mem::take(encoder.get_mut());
        self.is_turn_over = !coded.is_empty();
        self.encoder = Some(encoder);
        Some(coded)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn each_part_is_compressed_in_a_turn_of_its_own() {
        let text: Vec<u8> = (0..200_000)
            .flat_map(|n| format!("{n} ").into_bytes())
            .collect();
        let mut made = 0;
        let mut coded = Coded {
            parts: pieces(text.clone().into()).inspect(|_| made += 1),
            encoder: Some(encoder()),
            is_turn_over: false,
            _held: (),
        };
        let mut all = Vec::new();
        let mut turns = 0;
        for part in &mut coded {
            turns += usize::from(part.is_empty());
            all.extend(part);
        }
        drop(coded);
        assert_eq!(made, text.len().div_ceil(TURN_BYTES));
        assert_eq!(turns, made);
        assert!(all.len() < text.len());
        let mut decoded = Vec::new();
        let read = GzDecoder::new(all.as_slice()).read_to_end(&mut decoded);
        read.expect("gzip");
        assert_eq!(decoded, text);
    }
}
