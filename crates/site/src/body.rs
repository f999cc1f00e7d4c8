//! The body of a request, within limits of size and time.

use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};

/// A body that was not accepted.
#[derive(Debug)]
pub enum NoBody {
    /// The body is too long; `bytes` were announced or received.
    TooLong { bytes: u64 },
    /// The body did not arrive in time.
    TooSlow,
    /// The connection ended, or its framing is broken.
    Broken(hyper::Error),
}

impl NoBody {
    pub fn status(&self) -> StatusCode {
        match self {
            Self::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }
}

impl fmt::Display for NoBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { bytes } => write!(f, "a body of {bytes} bytes is too long"),
            Self::TooSlow => f.write_str("the body did not come in time"),
            Self::Broken(e) => write!(f, "the body did not come: {e}"),
        }
    }
}

/// Reads a whole body. A body whose announced length is too long is not read.
pub async fn collect(
    mut body: Incoming,
    bytes_max: usize,
    within: Duration,
) -> Result<Bytes, NoBody> {
    let said = body.size_hint().lower();
    if said > bytes_max as u64 {
        return Err(NoBody::TooLong { bytes: said });
    }
    let collected = async {
        let mut first = Bytes::new();
        let mut all = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(NoBody::Broken)?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let bytes = first.len() + all.len() + data.len();
            if bytes > bytes_max {
                return Err(NoBody::TooLong {
                    bytes: bytes as u64,
                });
            }
            // Most bodies arrive in one piece, which needs no copy.
            match (first.is_empty(), all.is_empty()) {
                (true, true) => first = data,
                (false, true) => {
                    all.extend_from_slice(&first);
                    all.extend_from_slice(&data);
                    first = Bytes::new();
                }
                _ => all.extend_from_slice(&data),
            }
        }
        Ok(if first.is_empty() {
            all.freeze()
        } else {
            first
        })
    };
    let collected = tokio::time::timeout(within, collected).await;
    collected.unwrap_or(Err(NoBody::TooSlow))
}
