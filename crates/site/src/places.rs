//! Limits the concurrent requests to other programs: as many more wait, and further ones are answered with 503. A
//! program that hangs occupies only its own places.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crosstie_transport::Connection;
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answer::{self, Body};
use super::held::Held;

/// The places of one service.
pub(crate) struct Places {
    free: Arc<Semaphore>,
    /// Number of requests that are served or wait.
    inside: Arc<AtomicUsize>,
    inside_max: usize,
}

/// A place, freed on drop.
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
    _inside: Inside,
    _held: Held,
}

/// Buffers of a forwarded request: a piece of each body and a header.
pub(crate) const PASSING_BYTES: isize = 96 * 1024;

struct Inside(Arc<AtomicUsize>);

impl Places {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(max)),
            inside: Arc::default(),
            inside_max: max.saturating_mul(2),
        }
    }

    /// Waits for a free place; an error is the answer for the client.
    pub(crate) async fn enter(
        &self,
        connection: &Arc<Connection>,
        within: Duration,
    ) -> Result<Place, Response<Body>> {
        let before = self.inside.fetch_add(1, Ordering::Relaxed);
        let inside = Inside(Arc::clone(&self.inside));
        if before >= self.inside_max {
            return Err(full());
        }
        let waiting = tokio::time::timeout(within, Arc::clone(&self.free).acquire_owned());
        match waiting.await {
            Ok(Ok(permit)) => Ok(Place {
                _permit: permit,
                _inside: inside,
                _held: Held::of(connection, PASSING_BYTES),
            }),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(full()),
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The answer when all places are taken.
fn full() -> Response<Body> {
    let text = "The maximum number of requests is being answered: try again in a moment.";
    let mut response = answer::page(
        StatusCode::SERVICE_UNAVAILABLE,
        "503 Service Unavailable",
        text,
    );
    let soon = HeaderValue::from_static("1");
    response.headers_mut().insert(RETRY_AFTER, soon);
    response
}
