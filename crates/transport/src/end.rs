//! What is behind a connection's queue: a socket, or what has its place where there is none.

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

/// What a mailbox has in place of a socket.
#[derive(Debug)]
pub(crate) struct Mailbox {
    peer: PeerAddress,
    /// What its peer has shown, checked, in DER.
    pub(crate) certificate: Option<Box<[u8]>>,
    items_max: u32,
    /// Changed under the lock of the queue.
    pub(crate) items: AtomicU32,
    pub(crate) takers: AtomicU32,
    /// One takes at a time: the queue is in nobody's hands but its.
    pub(crate) taking: Mutex<()>,
    /// There is something to take, or nothing will come any more.
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

    /// Tells the other end that it is over.
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
