//! A link between two realms, as a state machine: it mirrors one realm's subscriptions and registrations in the other,
//! and carries the resulting events and calls.
//!
//! ```text
//!                 ┌── interests: what its sessions hold (meta.rs reads the meta API)
//!   realm A ◄───► Leg                                        Leg ◄───► realm B
//!                 └── mirrors: what the link holds there for the other side (mirrors.rs decides)
//!
//!   EVENT, INVOCATION of a mirror on one side ──► carry.rs ──► PUBLISH, CALL on the other
//! ```
//!
//! To drive it: create it with both sessions joined, call [`Link::start`], pass every message that either session
//! receives to [`Link::handle`], and send the messages of its [`Outbox`]. An error of either ends the link: both
//! sessions must leave. It keeps no time.
//!
//! A carried message says so: its `forward_for` has the publisher or caller, followed by the links' own sessions
//! (`trail.rs`). Links announce their mirrors with the realms that these came through (`announcements.rs`), so that
//! rings of links neither keep each other's mirrors alive nor circulate messages.

mod announcements;
mod carry;
mod counts;
mod interests;
mod leg;
mod link;
mod meta;
mod meta_questions;
mod mirror;
mod mirrors;
mod requests;
mod sides;
mod trail;

use crosstie_wamp::{Message, MessageType, Payload, RequestId};

pub use counts::Count;
pub use link::Link;
pub use sides::{End, Ended, Kind, Outbox, Settings, Side};

use leg::Asked;

impl Link {
    /// Queries both realms.
    pub fn start(&mut self, out: &mut dyn Outbox) -> Result<(), Ended> {
        for side in Side::BOTH {
            self.join_announcements(side, out)?;
            for kind in Kind::BOTH {
                if self.settings.watches(kind) {
                    self.watch(side, kind, out)?;
                }
            }
        }
        Ok(())
    }

    /// Handles a message for the session of a side.
    pub fn handle(
        &mut self,
        side: Side,
        message: Message<'_>,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        match message {
            Message::Event {
                subscription,
                publication,
                details,
                payload,
            } => self.handle_event(side, subscription, (publication, details), payload, out),
            Message::Invocation {
                request,
                registration,
                details,
                payload,
            } => self.handle_invocation(side, (request, registration), details, payload, out),
            Message::Interrupt { request, options } => {
                self.handle_interrupt(side, request, &options, out)
            }
            Message::Result {
                request,
                details,
                payload,
            } => self.handle_result(side, request, details, payload, out),
            Message::Error {
                request_type,
                request,
                details,
                error,
                payload,
            } => {
                let error = (&*error, details, payload);
                self.handle_error(side, (request_type, request), error, out)
            }
            Message::Published { request, .. } => {
                if let Some(Asked::Publish) = self.legs[side as usize].asked.get(&request) {
                    self.legs[side as usize].answered(request);
                }
                Ok(())
            }
            other => self.handle_answered(side, other, out),
        }
    }

    /// Handles messages about subscriptions, registrations and the session itself.
    fn handle_answered(
        &mut self,
        side: Side,
        message: Message<'_>,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        match message {
            Message::Subscribed {
                request,
                subscription,
            } => self.handle_held(side, request, subscription.0, out),
            Message::Registered {
                request,
                registration,
            } => self.handle_held(side, request, registration.0, out),
            Message::Unsubscribed {
                revoked: Some(revoked),
                ..
            } => self.handle_revoked(side, Kind::Subscription, revoked.id.0, out),
            Message::Unregistered {
                revoked: Some(revoked),
                ..
            } => self.handle_revoked(side, Kind::Registration, revoked.id.0, out),
            Message::Unsubscribed { request, .. } | Message::Unregistered { request, .. } => {
                self.handle_dropped(side, request, out)
            }
            Message::Goodbye { details, reason } | Message::Abort { details, reason } => {
                let said = requests::message_of(&details);
                Err(Ended(match said {
                    Some(text) => format!("the {} realm has said {reason}: {text}", side.name()),
                    None => format!("the {} realm has said {reason}", side.name()),
                }))
            }
            other => Err(Ended(format!(
                "the {} side has sent {}, which no router sends in a session",
                side.name(),
                other.kind().name()
            ))),
        }
    }

    fn handle_result(
        &mut self,
        side: Side,
        request: RequestId,
        details: crosstie_wamp::ResultDetails<'_>,
        payload: Payload<'_>,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        match self.legs[side as usize].asked.get(&request) {
            Some(Asked::Call { invocation }) => {
                let invocation = *invocation;
                self.carry_result(side, (request, invocation), details, payload, out)
            }
            Some(Asked::Question(_)) => {
                if let Some(Asked::Question(question)) = self.legs[side as usize].answered(request)
                {
                    self.handle_answer(side, question, &payload, out)?;
                    self.ask_more(side, out)?;
                }
                Ok(())
            }
            // Late, or without a request.
            _ => Ok(()),
        }
    }

    fn handle_error(
        &mut self,
        side: Side,
        (request_type, request): (MessageType, RequestId),
        (uri, details, payload): (&str, crosstie_wamp::Dict, Payload<'_>),
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        let Some(asked) = self.legs[side as usize].answered(request) else {
            return Ok(());
        };
        let why = requests::reason(uri, &payload);
        match asked {
            Asked::Call { invocation } => {
                self.carry_error(side, invocation, (uri, details), payload, out)
            }
            Asked::Publish => {
                out.count(Count::EventsRefused);
                out.warn(&format!(
                    "the {} realm refuses an event: {why}",
                    side.name()
                ));
                Ok(())
            }
            Asked::Question(question) => {
                self.handle_no_answer(side, question, &why, out)?;
                self.ask_more(side, out)
            }
            Asked::Watch(what) => Err(Ended(format!(
                "the {} realm refuses a subscription to {what}: {why}",
                side.name()
            ))),
            // Links of that realm exchange no announcements.
            Asked::Announcements => Ok(()),
            Asked::Hold { kind, key } => {
                self.handle_not_held(side, kind, &key, &why, out)?;
                debug_assert!(request_type != MessageType::Call, "a request of its own");
                Ok(())
            }
            Asked::Drop { kind, key } => self.handle_gone(side, kind, &key, out),
        }
    }
}
