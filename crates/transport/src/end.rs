//! The target behind a connection's queue: a socket, or a mailbox.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{PeerAddress, Socket};

/// The other end of a connection.
#[derive(Debug)]
pub(crate) enum End {
    Socket(Socket),
    Mailbox(Box<Mailbox>),
}

/// The stand-in for a socket in a mailbox.
#[derive(Debug)]
pub(crate) struct Mailbox {
    peer: PeerAddress,
    /// The peer's verified certificate, in DER.
    pub(crate) certificate: Option<Box<[u8]>>,
    items_max: u32,
    /// Changed under the lock of the queue.
    pub(crate) items: AtomicU32,
    pub(crate) takers: AtomicU32,
    /// Held by the only taker: the rest of the queue is in its hands alone.
    pub(crate) taking: Mutex<()>,
    /// Notifies of something to take, or of the end.
    pub(crate) offered: Notify,
    pub(crate) ended: Notify,
}

impl End {
    pub(crate) fn peer(&self) -> PeerAddress {
        match self {
            Self::Socket(socket) => socket.peer(),
            Self::Mailbox(mailbox) => mailbox.peer,
        }
    }

    /// Ends both directions.
    pub(crate) fn shut_down(&self) {
        match self {
            Self::Socket(socket) => socket.shut_down(),
            Self::Mailbox(mailbox) => {
                mailbox.ended.notify_waiters();
                mailbox.offered.notify_waiters();
            }
        }
    }
}

impl Mailbox {
    pub(crate) fn new(peer: PeerAddress, certificate: Option<Vec<u8>>, items_max: usize) -> Self {
        Self {
            peer,
            certificate: certificate.map(Vec::into_boxed_slice),
            items_max: u32::try_from(items_max).unwrap_or(u32::MAX),
            items: AtomicU32::new(0),
            takers: AtomicU32::new(0),
            taking: Mutex::new(()),
            offered: Notify::new(),
            ended: Notify::new(),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.items.load(Ordering::Relaxed) >= self.items_max
    }
}
