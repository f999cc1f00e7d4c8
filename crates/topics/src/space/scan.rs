//! Sends retained messages to new subscriptions, some at a time.

use std::sync::Arc;

use crosstie_mqtt::QoS;

use super::Space;
use super::deliver::Form;
use super::entries::charge;
use crate::course::Recording;
use crate::fan::Fan;
use crate::keys::SessionKey;
use crate::outgoing::{DealtBy, identifiers};
use crate::retained::Step;
use crate::session::Session;
use crate::{Message, Outbox, Record, Time};

/// The end of a session's turn.
enum Turn {
    /// Its steps are over.
    More,
    /// It has no scans, or no space.
    Over,
}

impl<H> Space<H> {
    /// Puts a session in the line of those with scans, unless it has none or no space.
    pub(super) fn wake_scans(&mut self, key: SessionKey) {
        let queued_max = self.config.limits.queued_max;
        let Some(session) = self.clients.find_mut(key) else {
            return;
        };
        if session.rare.is_some() && !session.is_scanning && can_scan(session, queued_max) {
            session.is_scanning = true;
            self.scanning.push_back(key);
        }
    }

    /// Continues the scans of the session whose turn is next.
    pub(super) fn continue_scan(&mut self, now: Time, steps: usize, outbox: &mut impl Outbox<H>) {
        let Some(key) = self.scanning.pop_front() else {
            return;
        };
        let turn = self.scan(now, key, steps, outbox);
        let Some(session) = self.clients.find_mut(key) else {
            return;
        };
        match turn {
            Turn::More => self.scanning.push_back(key),
            Turn::Over => session.is_scanning = false,
        }
        self.pause_or_not(key, outbox);
    }

    fn scan<O: Outbox<H>>(
        &mut self,
        now: Time,
        key: SessionKey,
        steps: usize,
        outbox: &mut O,
    ) -> Turn {
        let queued_max = self.config.limits.queued_max;
        for _ in 0..steps {
            let found = self.clients.find_mut(key);
            let Some(session) = found.filter(|session| can_scan(session, queued_max)) else {
                return Turn::Over;
            };
            let scans = session.rare.as_mut().map(|rare| &mut rare.scans);
            let Some(mut scan) = scans.and_then(|scans| scans.first_entry()) else {
                return Turn::Over;
            };
            match self.retained.step(scan.get_mut()) {
                Step::Skipped => {}
                Step::Done => {
                    let scan = scan.remove();
                    let bytes = scan.bytes() as isize;
                    if session.is_recorded() {
                        self.ledger.record(Record::Subscribed {
                            session: session.number,
                            filter: scan.filter().into(),
                            options: scan.options.unpack(),
                            identifier: scan.identifier,
                            is_scanned: false,
                        });
                    }
                    session.tidy();
                    charge(session, -bytes, &mut self.ledger, outbox);
                }
                Step::Found(message) => {
                    let scan = scan.get();
                    let (qos, identifier) = (scan.options.qos(), scan.identifier);
                    self.send_retained(now, key, &message, (qos, identifier), outbox);
                }
            }
        }
        Turn::More
    }

    fn send_retained<O: Outbox<H>>(
        &mut self,
        now: Time,
        key: SessionKey,
        message: &Arc<Message>,
        (qos, identifier): (QoS, u32),
        outbox: &mut O,
    ) {
        let Some(content) = message.content(now) else {
            return;
        };
        let mut fan = Fan::<O::Shared>::new(content, self.buffers.take());
        fan.message = Some(Arc::clone(message));
        let one = [identifier];
        let form = Form {
            qos: message.qos.min(qos),
            retain: true,
            group: DealtBy::NONE,
            identifiers: identifiers(&one),
        };
        let before = self.ledger.counts.dropped_full;
        self.deliver(now, key, &form, &mut fan, &mut Recording::default(), outbox);
        self.buffers = Some(fan.buffers);
        if self.ledger.counts.dropped_full == before {
            return;
        }
        // Nothing is dropped: the scan stays at this message until the connection has space.
        self.ledger.counts.dropped_full = before;
        let session = self.clients.find_mut(key);
        if let Some(session) = session {
            session.is_full = true;
            let scans = session.rare.as_mut().map(|rare| &mut rare.scans);
            if let Some(mut scan) = scans.and_then(|scans| scans.first_entry()) {
                scan.get_mut().repeat();
            }
        }
    }
}

/// Whether a session has scans, and is to be sent more.
fn can_scan<H>(session: &Session<H>, queued_max: usize) -> bool {
    let has_scans = session
        .rare
        .as_ref()
        .is_some_and(|rare| !rare.scans.is_empty());
    let queued = session
        .outgoing
        .as_ref()
        .map_or(0, |outgoing| outgoing.len());
    let is_ready = session.link.is_some() && session.is_open && !session.is_full;
    // Retained messages leave half of the queue to others.
    has_scans && is_ready && queued <= queued_max / 2
}

/// Whether a client has to wait before it asks for more scans. Not while a scan waits for the client's acknowledgements.
pub(super) fn has_many_scans<H>(session: &Session<H>, queued_max: usize) -> bool {
    let scans = session.rare.as_ref().map_or(0, |rare| rare.scans.len());
    scans > SCANS_MAX && can_scan(session, queued_max)
}

/// A client with more scans is not read. A few bytes of a filter may cost a look at every retained message.
const SCANS_MAX: usize = 64;
