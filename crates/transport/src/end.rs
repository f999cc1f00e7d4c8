//! The target behind a connection's queue: a socket, or a mailbox.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{PeerAddress, Socket};

/// The owner of a mailbox, in place of a task that waits. Called from any thread.
pub trait Owner: Send + Sync {
    /// The address of its client.
    fn peer(&self) -> PeerAddress;

    /// Its client's verified certificate, in DER.
    fn certificate(&self) -> Option<Vec<u8>>;

    /// There may be something to take, or the mailbox is closed. Called outside locks.
    fn offered(&self);

    /// The peer's input may be handled again ([`Connection::resume_reading`](crate::Connection::resume_reading)).
    /// Called outside locks.
    fn resumed(&self);
}

/// The other end of a connection.
#[derive(Debug)]
pub(crate) enum End {
    Socket(Socket),
    Mailbox(Box<Mailbox>),
}

/// The stand-in for a socket in a mailbox.
pub(crate) struct Mailbox {
    items_max: u32,
    /// Changed under the lock of the queue.
    pub(crate) items: AtomicU32,
    pub(crate) takers: AtomicU32,
    /// Held by the only taker: the rest of the queue is in its hands alone.
    pub(crate) taking: Mutex<()>,
    told: Told,
}

/// Those that learn of something to take, and of the end.
enum Told {
    Tasks(Box<Tasks>),
    Owner(Weak<dyn Owner>),
}

/// Tasks that wait for requests of a peer.
struct Tasks {
    peer: PeerAddress,
    /// The peer's verified certificate, in DER.
    certificate: Option<Box<[u8]>>,
    waiting: Waiting,
}

/// Notifies tasks.
#[derive(Default)]
pub(crate) struct Waiting {
    /// Of something to take, or of the end.
    pub(crate) offered: Notify,
    pub(crate) ended: Notify,
}

impl End {
    pub(crate) fn peer(&self) -> PeerAddress {
        match self {
            Self::Socket(socket) => socket.peer(),
            Self::Mailbox(mailbox) => mailbox.peer(),
        }
    }

    /// Ends both directions.
    pub(crate) fn shut_down(&self) {
        match self {
            Self::Socket(socket) => socket.shut_down(),
            Self::Mailbox(mailbox) => {
                if let Some(waiting) = mailbox.waiting() {
                    waiting.ended.notify_waiters();
                }
                mailbox.tell();
            }
        }
    }
}

impl Mailbox {
    pub(crate) fn new(peer: PeerAddress, certificate: Option<Vec<u8>>, items_max: usize) -> Self {
        let tasks = Tasks {
            peer,
            certificate: certificate.map(Vec::into_boxed_slice),
            waiting: Waiting::default(),
        };
        Self::told(Told::Tasks(Box::new(tasks)), items_max)
    }

    /// A mailbox beside the connection of its owner's client.
    pub(crate) fn owned(owner: Weak<dyn Owner>, items_max: usize) -> Self {
        Self::told(Told::Owner(owner), items_max)
    }

    fn told(told: Told, items_max: usize) -> Self {
        Self {
            items_max: u32::try_from(items_max).unwrap_or(u32::MAX),
            items: AtomicU32::new(0),
            takers: AtomicU32::new(0),
            taking: Mutex::new(()),
            told,
        }
    }

    /// After its owner's end a mailbox has no address. It must not pass for a client of this machine, which may do more.
    fn peer(&self) -> PeerAddress {
        match &self.told {
            Told::Tasks(tasks) => tasks.peer,
            Told::Owner(owner) => match owner.upgrade() {
                Some(owner) => owner.peer(),
                None => PeerAddress::Tcp(([0, 0, 0, 0], 0).into()),
            },
        }
    }

    /// The peer's verified certificate, in DER.
    pub(crate) fn certificate(&self) -> Option<Vec<u8>> {
        match &self.told {
            Told::Tasks(tasks) => tasks.certificate.as_deref().map(<[u8]>::to_vec),
            Told::Owner(owner) => owner.upgrade()?.certificate(),
        }
    }

    pub(crate) fn owner(&self) -> Option<Arc<dyn Owner>> {
        match &self.told {
            Told::Tasks(_) => None,
            Told::Owner(owner) => owner.upgrade(),
        }
    }

    /// Those that tasks wait with, unless there is an owner.
    pub(crate) fn waiting(&self) -> Option<&Waiting> {
        match &self.told {
            Told::Tasks(tasks) => Some(&tasks.waiting),
            Told::Owner(_) => None,
        }
    }

    /// Notifies takers.
    pub(crate) fn tell(&self) {
        if let Some(waiting) = self.waiting() {
            waiting.offered.notify_waiters();
        }
        if let Some(owner) = self.owner() {
            owner.offered();
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.items.load(Ordering::Relaxed) >= self.items_max
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox")
            .field("peer", &self.peer())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owned_mailbox_costs_little() {
        assert!(size_of::<Mailbox>() <= 32, "{}", size_of::<Mailbox>());
    }
}
