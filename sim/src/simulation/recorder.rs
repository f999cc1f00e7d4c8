//! The simulated outbox.

use std::collections::{BTreeSet, HashMap};

use crosstie_routing::{CloseReason, Outbox, Question, Refused};
use crosstie_wamp::Message;

use crate::{Name, Refusing, Sent};

/// Records all messages, and refuses as it is told.
#[derive(Default)]
pub(super) struct Recorder {
    pub(super) sent: Vec<(Name, Sent)>,
    pub(super) refusing: HashMap<Name, Refusing>,
    /// Sessions that are to be sent nothing more.
    closed: BTreeSet<Name>,
    /// Which messages and errors were sent in this run.
    pub(super) kinds: BTreeSet<String>,
    /// The question to an authorizer, and its session.
    pub(super) asked: Option<(Name, Question)>,
    /// Bytes that the realm holds for each.
    pub(super) held: HashMap<Name, isize>,
    /// A message that an outbox must never receive.
    pub(super) complaint: Option<String>,
}

impl Recorder {
    fn note(&mut self, sent: &Sent) {
        let kind = match sent {
            Sent::Error { uri, .. } => uri.clone(),
            Sent::Event { retained: true, .. } => "Event, retained".to_owned(),
            Sent::Unregistered { request: 0, .. } => "Unregistered, revoked".to_owned(),
            Sent::Unsubscribed { request: 0, .. } => "Unsubscribed, revoked".to_owned(),
            Sent::Result {
                callee: Some(_), ..
            } => "Result, disclosed".to_owned(),
            other => format!("{other:?}")
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_owned(),
        };
        self.kinds.insert(kind);
    }
}

impl Outbox<Name> for Recorder {
    fn send(&mut self, to: &Name, message: &Message<'_>) -> Result<(), Refused> {
        if self.closed.contains(to) {
            self.complaint = Some(format!("{to} was sent {message:?} after it was closed"));
        }
        let sent = match Sent::from_message(message) {
            Ok(sent) => sent,
            Err(complaint) => {
                self.complaint = Some(complaint);
                return Ok(());
            }
        };
        let refusing = self.refusing.get(to);
        if let Some(refused) = refusing.and_then(|r| r.refusal(sent.carries_payload())) {
            return Err(refused);
        }
        self.note(&sent);
        self.sent.push((*to, sent));
        Ok(())
    }

    fn publish(&mut self, event: &Message<'_>, receivers: &mut dyn Iterator<Item = &Name>) {
        for receiver in receivers {
            let _ = self.send(receiver, event);
        }
    }

    fn ask(&mut self, session: &Name, question: Question) {
        if self.asked.replace((*session, question)).is_some() {
            self.complaint = Some("two questions for one message".to_owned());
        }
    }

    fn hold(&mut self, session: &Name, delta: isize) {
        let held = self.held.entry(*session).or_default();
        *held += delta;
        if *held < 0 {
            self.complaint = Some(format!("{held} bytes are held for {session}"));
        }
    }

    fn goodbye(&mut self, session: &Name, reason: &str, _message: Option<&str>) {
        if !self.closed.insert(*session) {
            self.complaint = Some(format!("{session} was ended after it was closed"));
        }
        let reason = reason.to_owned();
        let goodbye = Sent::Goodbye { reason };
        self.note(&goodbye);
        self.sent.push((*session, goodbye));
    }

    fn close(&mut self, session: &Name, _reason: CloseReason) {
        if !self.closed.insert(*session) {
            self.complaint = Some(format!("{session} was closed twice"));
        }
        self.note(&Sent::Closed);
        self.sent.push((*session, Sent::Closed));
    }
}
