//! Receivers with bounds of their own.

use std::pin::pin;
use std::sync::Arc;

use crate::out::Out;
use crate::overflow::{Bounds, Item, Overflow, Queued};
use crate::{Connection, Refused};

impl Connection {
    #[cold]
    pub(crate) fn keep_written<E>(
        self: &Arc<Self>,
        out: &mut Out,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), Refused<E>> {
        let mut bytes = Vec::new();
        write(&mut bytes).map_err(Refused::Writer)?;
        self.keep(out, Item::Whole(bytes.into()), false).map(drop)
    }

    /// Keeps an item while the socket is full; the sending task takes it from there.
    #[cold]
    pub(crate) fn keep<E>(
        self: &Arc<Self>,
        out: &mut Out,
        item: Item,
        is_event: bool,
    ) -> Result<Queued, Refused<E>> {
        out.keep(item, is_event, &self.limits)?;
        self.note_debt(out);
        self.cork(out, is_event);
        Ok(Queued::Freely)
    }

    /// Sets or removes the receiver's own bounds.
    pub fn bound(&self, bounds: Option<Bounds>) {
        let is_mailbox = self.as_mailbox().is_some();
        let bounds = bounds.map(|mut bounds| {
            if is_mailbox && bounds.overflow == Overflow::DropOldest {
                bounds.overflow = Overflow::DropNew;
            }
            bounds
        });
        self.out.lock().bound(bounds);
    }

    /// The treatment of events for which there is no room.
    pub fn overflow(&self) -> Overflow {
        self.out.lock().overflow()
    }

    /// Waits until less than a quarter of the queue's bound waits, the connection is closing, or its receiver no longer
    /// holds publishers back. A cancelled wait leaves nothing behind.
    pub async fn eased(&self) {
        loop {
            let Some(ease) = self.out.lock().ease() else {
                return;
            };
            let mut notified = pin!(ease.notified());
            notified.as_mut().enable();
            if self.out.lock().is_eased(&self.limits) {
                return;
            }
            notified.await;
        }
    }
}
