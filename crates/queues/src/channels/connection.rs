//! A connection, as far as its vhost knows it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crosstie_auth::Permissions;

use crate::{ChannelKey, QueueKey};

/// The client of a connection.
#[derive(Clone, Debug)]
pub struct Client {
    pub user: Arc<str>,
    pub permissions: Arc<Permissions>,
    /// The capability `consumer_cancel_notify`: the client wants to be told when a consumed queue is deleted.
    pub consumer_cancel_notify: bool,
    /// May publish with any `user-id` (RabbitMQ's tag `impersonator`).
    pub is_impersonator: bool,
}

impl Client {
    /// A client that may do everything but publish with a `user-id` of another user, for tests and examples.
    #[doc(hidden)]
    pub fn unrestricted(user: &str) -> Self {
        Self {
            user: user.into(),
            permissions: Arc::new(Permissions::all()),
            consumer_cancel_notify: true,
            is_impersonator: false,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Connection<H> {
    pub(crate) handle: H,
    pub(crate) client: Client,
    /// It refused a message; it is sent no more until it resumes.
    pub(super) is_full: bool,
    /// Closed: its remains are being removed.
    pub(crate) is_closing: bool,
    /// Its resumption is not complete for all its channels.
    pub(crate) is_resuming: bool,
    pub(crate) channels: Vec<ChannelKey>,
    /// Consumers of all its channels.
    pub(crate) consumers: usize,
    /// The exclusive queues that are deleted with it.
    pub(crate) queues: BTreeSet<QueueKey>,
    pub(super) charge: Charge,
}

/// The bytes that are held for a connection beside its messages.
#[derive(Debug, Default)]
pub(crate) struct Charge {
    /// Bytes that the outbox was told of.
    pub(super) told: isize,
    /// Bytes that the outbox has yet to be told of.
    pub(super) untold: isize,
}

impl<H> Connection<H> {
    pub(super) fn new(handle: H, client: Client) -> Self {
        Self {
            handle,
            client,
            is_full: false,
            is_closing: false,
            is_resuming: false,
            channels: Vec::new(),
            consumers: 0,
            queues: BTreeSet::new(),
            charge: Charge::default(),
        }
    }
}
