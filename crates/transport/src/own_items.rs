//! Items that wait for a receiver with bounds of its own.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::out::{ConnectionLimits, Out, Phase, Refused};
use crate::overflow::{Bounds, Item, Overflow, Own, Queued};

impl Out {
    /// Sets or removes the receiver's own bounds.
    pub(crate) fn bound(&mut self, bounds: Option<Bounds>) {
        if let Some(ease) = self.ease() {
            ease.notify_waiters();
        }
        match (&mut self.rare_mut().own, bounds) {
            (Some(own), Some(bounds)) => own.bounds = bounds,
            (own @ None, Some(bounds)) => *own = Some(Box::new(Own::of(bounds))),
            // Kept items are still to be sent.
            (Some(own), None) if !own.kept.is_empty() => own.bounds.overflow = Overflow::DropNew,
            (own, None) => *own = None,
        }
        self.tidy();
    }

    #[inline]
    pub(crate) fn queue_bytes_max(&self, limits: &ConnectionLimits) -> usize {
        match self.own() {
            None => limits.queue_bytes_max,
            Some(own) => own.bounds.queue_bytes_max.min(limits.queue_bytes_max),
        }
    }

    pub(crate) fn overflow(&self) -> Overflow {
        let own = self.own();
        own.map_or_else(Overflow::default, |own| own.bounds.overflow)
    }

    /// Whether an event, or any item, is to be kept separately.
    #[inline]
    pub(crate) fn keeps(&self, is_event: bool, limits: &ConnectionLimits) -> bool {
        match self.own() {
            None => false,
            Some(own) => {
                // Items outside the kept ones cannot make room, so they may fill half.
                let is_wanted =
                    || self.blocked || self.queued_bytes() > self.queue_bytes_max(limits) / 2;
                let is_dropped = is_event && own.bounds.overflow == Overflow::DropOldest;
                !own.kept.is_empty() || (is_dropped && is_wanted())
            }
        }
    }

    /// Keeps an item behind the full socket.
    #[cold]
    pub(crate) fn keep<E>(
        &mut self,
        item: Item,
        is_event: bool,
        limits: &ConnectionLimits,
    ) -> Result<(), Refused<E>> {
        if self.phase != Phase::Open {
            return Err(Refused::Gone);
        }
        if limits.account.is_shut_for(self.debt().bytes()) {
            return Err(Refused::Full);
        }
        let excess = self.queued_bytes() + item.len();
        let excess = excess.saturating_sub(self.queue_bytes_max(limits));
        let Some(own) = self.own_mut() else {
            return Err(Refused::Full);
        };
        if excess > 0 {
            if !is_event || own.kept.len() < excess {
                return Err(Refused::Full);
            }
            (own.bounds.count_dropped)(own.kept.drop_oldest(excess));
            if self.queued_bytes() + item.len() > self.queue_bytes_max(limits) {
                return Err(Refused::Full);
            }
        }
        if let Some(own) = self.own_mut() {
            own.kept.push(item, is_event);
        }
        self.charge(limits);
        Ok(())
    }

    /// Moves kept items to the queue, to be sent next.
    #[inline]
    pub(crate) fn refill(&mut self, limits: &ConnectionLimits) {
        let bytes_max = self.queue_bytes_max(limits) / 4;
        if let Some(rare) = &mut self.rare
            && let Some(own) = &mut rare.own
            && rare.rest.is_none()
            && rare.unfiltered.is_none()
            && self.queue.is_empty()
        {
            own.kept.refill(&mut self.queue, bytes_max);
        }
    }

    /// Drops the kept items: the connection ends.
    pub(crate) fn forget_kept(&mut self) {
        if let Some(own) = self.own_mut() {
            own.kept = Default::default();
        }
    }

    /// How the last append was queued.
    #[inline]
    pub(crate) fn queued(&self, limits: &ConnectionLimits) -> Queued {
        match self.overflow() {
            Overflow::HoldBack if self.queued_bytes() > self.queue_bytes_max(limits) / 2 => {
                Queued::Slowly
            }
            _ => Queued::Freely,
        }
    }

    /// Whether so little waits that held-back publishers may continue, or none are held back any more.
    pub(crate) fn is_eased(&self, limits: &ConnectionLimits) -> bool {
        self.phase != Phase::Open
            || self.overflow() != Overflow::HoldBack
            || self.queued_bytes() <= self.queue_bytes_max(limits) / 4
    }

    /// The notification for held-back publishers.
    pub(crate) fn ease(&self) -> Option<Arc<Notify>> {
        self.own().map(|own| Arc::clone(&own.ease))
    }

    #[inline]
    pub(crate) fn wake_held_back(&self, limits: &ConnectionLimits) {
        if let Some(own) = self.own()
            && self.is_eased(limits)
        {
            own.ease.notify_waiters();
        }
    }
}
