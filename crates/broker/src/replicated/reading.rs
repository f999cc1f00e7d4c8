//! Reading the log along, beside everything else that a standby node does: a read may take seconds.

use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

use crosstie_jetstream::{Failed, Stream};

use super::log;

type Entries = Result<Vec<(u64, Vec<u8>)>, Failed>;
type Read = Pin<Box<dyn Future<Output = Entries> + Send>>;

/// The read in progress, if any.
#[derive(Default)]
pub(super) struct Reading {
    /// The number of the entry up to which the log is read.
    pub(super) to: u64,
    /// With the number of the entry before.
    pending: Option<(u64, Read)>,
}

/// Pause after a read that found nothing: the server lags behind its leader.
const PAUSE: Duration = Duration::from_millis(50);

impl Reading {
    /// Begins the next read behind that entry, if one is due.
    pub(super) fn go_on(&mut self, stream: &Stream, after: u64) {
        if self.pending.is_some() || after >= self.to {
            return;
        }
        let stream = stream.clone();
        let read = async move {
            let read = log::read_some(&stream, after).await;
            if read.as_ref().is_ok_and(Vec::is_empty) {
                tokio::time::sleep(PAUSE).await;
            }
            read
        };
        self.pending = Some((after, Box::pin(read)));
    }

    /// The entries behind that one.
    pub(super) async fn next(&mut self) -> (u64, Entries) {
        let Some((after, read)) = &mut self.pending else {
            return pending().await;
        };
        let (after, read) = (*after, read.await);
        self.pending = None;
        (after, read)
    }
}
