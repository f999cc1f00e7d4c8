//! Publications that wait for later turns.

use std::collections::VecDeque;

use super::Space;
use crate::course::{Job, Source};
use crate::fan::Fan;
use crate::{Outbox, Time};

impl<H> Space<H> {
    pub fn has_backlog(&self) -> bool {
        let has_publications = !self.backlog.is_empty() || !self.wills.is_empty();
        let is_due = self.line.is_due(self.ledger.committed) || !self.failed.is_empty();
        has_publications || is_due || !self.scanning.is_empty() || !self.ending.is_empty()
    }

    /// Continues postponed work, some `steps` of each kind: a step is a receiver, an acknowledgement that has waited for a
    /// commit, a retained message that is looked at, or a subscription or message of a session that has ended.
    pub fn work(&mut self, now: Time, steps: usize, outbox: &mut impl Outbox<H>) {
        self.continue_line(now, steps, outbox);
        self.continue_failed(now, steps, outbox);
        self.continue_publications(now, steps, outbox);
        self.continue_scan(now, steps, outbox);
        self.continue_endings(now, steps, outbox);
    }

    /// Puts a publication at the end of the backlog, on the account of the space.
    pub(super) fn postpone(&mut self, mut job: Job, outbox: &mut impl Outbox<H>) {
        self.ledger.hold(&job.message);
        self.charge_course(&mut job);
        self.receivers_postponed += job.weight();
        self.count_postponed(&job.source, true, outbox);
        self.line_of(&job.source).push_back(job);
    }

    fn charge_course(&mut self, job: &mut Job) {
        let bytes = job.course.bytes() as isize;
        self.ledger.keep(bytes - job.charged);
        job.charged = bytes;
    }

    /// Works off a part of a backlog that exceeds its bound.
    pub(super) fn pay(&mut self, now: Time, outbox: &mut impl Outbox<H>) {
        for _ in 0..TURNS_PAID {
            if !self.exceeds_postponed(1) {
                break;
            }
            self.continue_publications(now, self.config.limits.steps_max.max(1), outbox);
        }
    }

    /// Whether postponed publications exceed so many times their bound.
    pub(super) fn exceeds_postponed(&self, times: usize) -> bool {
        let limits = &self.config.limits;
        self.receivers_postponed > limits.postponed_max.saturating_mul(times)
    }

    fn line_of(&mut self, source: &Source) -> &mut VecDeque<Job> {
        match source.will_of {
            Some(_) => &mut self.wills,
            None => &mut self.backlog,
        }
    }

    /// Continues the oldest publication and the oldest will.
    fn continue_publications(&mut self, now: Time, steps: usize, outbox: &mut impl Outbox<H>) {
        let oldest = [self.backlog.pop_front(), self.wills.pop_front()];
        for job in oldest.into_iter().flatten() {
            self.continue_publication(now, job, steps, outbox);
        }
    }

    fn continue_publication<O: Outbox<H>>(
        &mut self,
        now: Time,
        mut job: Job,
        steps: usize,
        outbox: &mut O,
    ) {
        self.receivers_postponed -= job.weight();
        let course = &mut job.course;
        let is_done = match job.message.content(now) {
            Some(content) => {
                let buffers = self.buffers.take();
                let mut fan = Fan::<O::Shared>::new(content, buffers);
                fan.message = Some(std::sync::Arc::clone(&job.message));
                let is_done = self.run(now, &job.source, &mut fan, course, steps, outbox);
                self.buffers = Some(fan.buffers);
                is_done
            }
            // Further receivers of an expired message are not served.
            None => {
                self.conclude(&job.source, Some(&job.message), course, outbox);
                self.send_stored(now, course, steps, outbox)
            }
        };
        if !is_done {
            self.receivers_postponed += job.weight();
            self.charge_course(&mut job);
            let source = job.source;
            return self.line_of(&source).push_front(job);
        }
        let Job {
            source,
            message,
            course,
            charged,
        } = job;
        self.ledger.keep(-charged);
        self.put_back(course);
        self.ledger.release(&message);
        self.count_postponed(&source, false, outbox);
    }
}

impl Job {
    /// Its share of the postponed work.
    fn weight(&self) -> usize {
        1 + self.course.left() + self.message.bytes() / BYTES_PER_RECEIVER
    }
}

/// The publication that exceeds the bound works off so many turns. More would hold up others.
const TURNS_PAID: usize = 4;

/// Bytes of a waiting message that count as a receiver.
const BYTES_PER_RECEIVER: usize = 64;
