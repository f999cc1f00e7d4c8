//! Messages of the router's own sessions whose role has an authorizer.
//!
//! As with any session, messages behind one that is being judged wait, so that the order is kept. Here they wait as
//! encoded bytes, and a task routes them in turn.

use std::sync::Arc;

use crosstie_front::counters::{Counter, counters};
use crosstie_routing::Question;
use crosstie_wamp::Message;
use crosstie_wamp::codec::{self, Limits};

use super::session::{Queue, Resident, Untaken, send};
use crate::handled::Handled;
use crate::peer::Peer;

/// Messages that wait behind the one being judged.
pub(super) struct Judged {
    queue: Queue,
    bytes: usize,
}

/// Maximum number, and maximum bytes, of waiting messages.
const MESSAGES_MAX: usize = 1_024;
const BYTES_MAX: usize = 16 << 20;

impl Judged {
    /// Adds a message to those that wait.
    pub(crate) fn push(&mut self, message: &Message<'_>, peer: &Peer) -> Result<(), Untaken> {
        let bytes = encoded(message, peer)?;
        if self.queue.len() >= MESSAGES_MAX || self.bytes + bytes.len() > BYTES_MAX {
            return Err(Untaken::Busy);
        }
        self.bytes += bytes.len();
        hold(peer, bytes.len() as isize);
        self.queue.push_back(bytes);
        Ok(())
    }

    fn pop(&mut self, peer: &Peer) -> Option<Vec<u8>> {
        let bytes = self.queue.pop_front()?;
        self.bytes -= bytes.len();
        hold(peer, -(bytes.len() as isize));
        Some(bytes)
    }

    /// Drops the messages that wait.
    pub(super) fn release(self, peer: &Peer) {
        hold(peer, -(self.bytes as isize));
    }
}

/// Asks an authorizer about a message; later messages wait.
pub(super) fn begin(
    resident: &Arc<Resident>,
    message: &Message<'_>,
    question: Question,
) -> Result<Judged, Untaken> {
    let bytes = encoded(message, &resident.peer)?;
    let asking = go_on(Arc::clone(resident), bytes, question);
    resident.runtime.spawn(asking);
    Ok(Judged {
        queue: Queue::new(),
        bytes: 0,
    })
}

/// Asks about one message after another until none waits.
async fn go_on(resident: Arc<Resident>, mut bytes: Vec<u8>, mut question: Question) {
    loop {
        counters().count(Counter::AuthorizersAsked);
        let judging = resident
            .room
            .judge(resident.key, &resident.peer, &question, &bytes);
        let verdict = judging.await;
        let mut handled = say(&resident, &bytes, |message| {
            let judged = (question, verdict);
            let connection = &resident.peer.connection;
            resident
                .room
                .route_judged(resident.key, message, connection, judged)
        });
        // The next message may need a verdict, too.
        question = loop {
            match handled {
                Some(Handled {
                    outcome: Err(violation),
                    ..
                }) => {
                    resident.end(&violation.message);
                    return;
                }
                Some(Handled {
                    asked: Some(question),
                    ..
                }) => break *question,
                _ => {}
            }
            let Some(next) = next(&resident) else {
                return;
            };
            bytes = next;
            handled = say(&resident, &bytes, |message| {
                let connection = &resident.peer.connection;
                resident.room.route(resident.key, message, connection)
            });
        };
    }
}

/// The next waiting message; without one, the session is no longer judged.
fn next(resident: &Resident) -> Option<Vec<u8>> {
    let mut line = resident.line.lock();
    let bytes = line.judged.as_mut()?.pop(&resident.peer);
    if bytes.is_none() {
        line.judged = None;
    }
    bytes
}

fn say(
    resident: &Resident,
    bytes: &[u8],
    route: impl FnOnce(&Message<'_>) -> Handled,
) -> Option<Handled> {
    let serializer = resident.peer.wire.serializer;
    // The router itself encoded it a moment ago.
    let message = codec::decode(serializer, bytes, &Limits { depth_max: 512 }).ok()?;
    let handled = route(&message);
    send();
    Some(handled)
}

fn encoded(message: &Message<'_>, peer: &Peer) -> Result<Vec<u8>, Untaken> {
    let mut bytes = Vec::new();
    let written = codec::encode(message, peer.wire.serializer, &mut bytes);
    match written {
        Ok(()) => Ok(bytes),
        Err(e) => Err(Untaken::Violation(e.to_string())),
    }
}

fn hold(peer: &Peer, delta: isize) {
    peer.connection.hold(delta);
}
