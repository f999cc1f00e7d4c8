//! Expiry and bounds of queues (`x-message-ttl`, `x-max-length`, `x-expires`).

use std::sync::Arc;

use super::{QueueTimer, Queues, Reason};
use crate::confirms::Confirms;
use crate::ledger::Ledger;
use crate::policy::Applied;
use crate::topology::QueueArguments;
use crate::{QueueKey, Time};

impl Queues {
    /// Drops expired messages at the front, as far as this input's steps allow. For the rest the queue is attended to
    /// later.
    #[inline(always)]
    pub(crate) fn drop_expired(
        &mut self,
        now: Time,
        key: QueueKey,
        ledger: &mut Ledger,
        confirms: &mut Confirms,
    ) {
        if let Some(queue) = self.queues.find(key)
            && let Some(first) = queue.messages.front()
            && first.is_expired(now)
        {
            self.expire_first(now, key, ledger, confirms);
        }
    }

    #[cold]
    fn expire_first(
        &mut self,
        now: Time,
        key: QueueKey,
        ledger: &mut Ledger,
        confirms: &mut Confirms,
    ) {
        while let Some(queue) = self.queues.find_mut(key)
            && queue.messages.front().is_some_and(|e| e.is_expired(now))
        {
            if ledger.steps.is_over() {
                return self.postpone(key);
            }
            let Some(entry) = queue.pop() else {
                return;
            };
            ledger.counts.expired += 1;
            ledger.steps.spend(1);
            self.die(key, entry, Reason::Expired, ledger, confirms);
        }
    }

    /// Drops messages at the front until the queue is within its bounds: those that would be next, whatever their
    /// priority.
    pub(crate) fn drop_overflow(
        &mut self,
        key: QueueKey,
        ledger: &mut Ledger,
        confirms: &mut Confirms,
    ) {
        while let Some(queue) = self.queues.find_mut(key) {
            // Older messages are being returned.
            if queue.returning > 0 {
                return;
            }
            if !queue.overflows() {
                queue.settings.overflow = queue.settings.overflow.settled();
                return;
            }
            if ledger.steps.is_over() {
                return self.postpone(key);
            }
            let Some(entry) = queue.pop() else {
                return;
            };
            ledger.steps.spend(1);
            self.die(key, entry, Reason::MaxLength, ledger, confirms);
        }
    }

    /// Sets a timer for the expiry of the first message, and requests the next page of a deep queue if that is due.
    #[inline]
    pub(crate) fn set_head_timer(&mut self, key: QueueKey) {
        let Some(queue) = self.queues.find_mut(key) else {
            return;
        };
        if queue.wants_page() {
            queue.is_wanting = true;
            self.wanting.push_back(key);
        }
        let Some(expires_at) = queue.messages.front().and_then(|first| first.expires_at) else {
            return;
        };
        if queue.is_postponed {
            return;
        }
        if queue.head_timer.is_none_or(|at| expires_at < at) {
            queue.head_timer = Some(expires_at);
            self.set_timer(expires_at, QueueTimer::Head(key));
        }
    }

    /// Notes a use of the queue. If the queue expires, a timer checks for its last use.
    pub(crate) fn touch(&mut self, now: Time, key: QueueKey, is_consumed: bool) {
        let Some(queue) = self.queues.find_mut(key) else {
            return;
        };
        queue.used_at = now;
        if let Some(expires_ms) = queue.settings.expires_ms
            && queue.unused_timer.is_none()
            && !is_consumed
        {
            let due = Time(now.0.saturating_add(expires_ms));
            queue.unused_timer = Some(due);
            self.set_timer(due, QueueTimer::Unused(key));
        }
    }

    /// A queue counts as used now, and expires by its present settings, whatever its timer was set for.
    pub(crate) fn restart_expiry(&mut self, now: Time, key: QueueKey, is_consumed: bool) {
        if let Some(queue) = self.queues.find_mut(key) {
            queue.unused_timer = None;
        }
        self.touch(now, key, is_consumed);
    }

    /// Replaces the settings of a queue, which is attended to after that.
    pub(crate) fn set_settings(&mut self, key: QueueKey, settings: QueueArguments) {
        if let Some(queue) = self.queues.find_mut(key) {
            if settings.is_at_least_once {
                // It stays so: letters may be left when the policy is withdrawn.
                queue.role.keep();
            }
            queue.settings = settings;
        }
    }

    /// Notes the policies that apply to a queue.
    pub(crate) fn set_applied(&mut self, key: QueueKey, applied: Option<Arc<Applied>>) {
        if let Some(queue) = self.queues.find_mut(key) {
            queue.applied = applied;
        }
    }

    /// Whether a queue has been unused for its expiry time. To be called when the timer of [`Self::touch`] is due.
    pub(crate) fn is_unused(&mut self, now: Time, key: QueueKey, is_consumed: bool) -> bool {
        let Some(queue) = self.queues.find_mut(key) else {
            return false;
        };
        queue.unused_timer = None;
        let Some(expires_ms) = queue.settings.expires_ms.filter(|_| !is_consumed) else {
            return false;
        };
        let due = Time(queue.used_at.0.saturating_add(expires_ms));
        if due <= now {
            return true;
        }
        queue.unused_timer = Some(due);
        self.set_timer(due, QueueTimer::Unused(key));
        false
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Takes a timer that is due. If another timer waits for the queue's present first message, the inner value is
    /// `None`.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<Option<QueueTimer>> {
        let (at, timer) = self.timers.take_due(now)?;
        if let QueueTimer::Letters(key) = timer {
            return Some(self.take_retry(key, at).then_some(timer));
        }
        let waiting = match timer {
            QueueTimer::Head(key) => self.queues.find_mut(key).map(|q| &mut q.head_timer),
            QueueTimer::Unused(key) => self.queues.find_mut(key).map(|q| &mut q.unused_timer),
            QueueTimer::Letters(_) => None,
        };
        let is_live = waiting.and_then(|due| due.take_if(|due| *due == at));
        Some(is_live.map(|_| timer))
    }

    pub(super) fn set_timer(&mut self, at: Time, timer: QueueTimer) {
        let queues = &self.queues;
        self.timers.set(at, timer, |at, timer| match timer {
            QueueTimer::Head(key) => queues.find(key).is_some_and(|q| q.head_timer == Some(at)),
            QueueTimer::Unused(key) => queues.find(key).is_some_and(|q| q.unused_timer == Some(at)),
            QueueTimer::Letters(key) => {
                let letters = queues.find(key).and_then(|queue| queue.role.letters());
                letters.is_some_and(|letters| letters.retry_at == Some(at))
            }
        });
    }
}
