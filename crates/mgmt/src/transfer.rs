//! Messages that move from one queue to another: fetched, published, and acknowledged once the other queue has them.
//!
//! One order moves a bounded number. A caller repeats it for more, and stops at any time. No message is lost: if the
//! broker or the node ends in between, or blocks publishers, those of one order may be in both queues.

use std::sync::Arc;

use crosstie_amqp::Method;
use crosstie_amqp::method::{BasicAck, BasicGet, BasicNack, BasicPublish, BasicQos, ConfirmSelect};

use crate::call::{Api, Call};
use crate::caller::Caller;
use crate::health;
use crate::request::{Head, Query};
use crate::talk::{Event, Message, Refusal, Talk};

/// An order to move messages.
#[derive(Clone, Debug)]
pub struct Transfer {
    pub vhost: String,
    pub from: String,
    pub to: String,
    /// Maximum number of messages.
    pub limit: usize,
}

/// The outcome of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transferred {
    pub moved: usize,
    /// Number of messages that were ready behind the last one.
    pub left: u64,
}

/// Why an order ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTransferred {
    /// One of the queues does not exist.
    pub is_missing: bool,
    pub moved: usize,
    pub why: String,
}

/// Bytes from which on no further message is fetched for an order: they are in memory twice.
const BYTES_MAX: usize = 1 << 20;

impl Api {
    /// Moves messages as the operator, who has every right. Their `user-id` stays.
    pub async fn transfer(
        self: &Arc<Self>,
        order: &Transfer,
    ) -> Result<Transferred, NotTransferred> {
        let (caller, head) = (Caller::impersonator(), Head::default());
        let call = Call {
            api: self,
            caller: &caller,
            query: Query::parse(""),
            head: &head,
            answer_bytes_max: 0,
        };
        let vhost = call
            .vhost(&order.vhost)
            .map_err(|why| missing(&why.to_string()))?;
        for queue in [&order.from, &order.to] {
            if !vhost.has_queue(queue) {
                let why = format!("no queue '{queue}' in vhost '{}'", order.vhost);
                return Err(missing(&why));
            }
        }
        if order.from == order.to {
            return Err(stopped(0, "expected another queue as the target"));
        }
        // The publications would wait in the broker, and arrive after their messages are in their queue again.
        let short = health::resources(&call).join(", ");
        if !short.is_empty() {
            return Err(stopped(0, &format!("publishers are blocked: {short}")));
        }
        let refused = |refusal: Refusal| stopped(0, &refusal.text);
        let mut talk = Talk::open(&call, &order.vhost).await.map_err(refused)?;
        let fetched = fetch(&mut talk, order).await.map_err(refused)?;
        let left = fetched.last().map_or(0, |(_, left, _)| *left);
        let tags: Vec<u64> = fetched.iter().map(|(tag, ..)| *tag).collect();
        let (accepted, failure) = publish(&mut talk, order, fetched).await;
        let moved = accepted.iter().filter(|is| **is).count();
        let settled = settle(&mut talk, &tags, &accepted).await;
        let failure = failure.or_else(|| settled.err().map(|refusal| refusal.text));
        match failure {
            None => Ok(Transferred { moved, left }),
            Some(why) => Err(stopped(moved, &why)),
        }
    }
}

fn missing(why: &str) -> NotTransferred {
    NotTransferred {
        is_missing: true,
        moved: 0,
        why: why.to_owned(),
    }
}

fn stopped(moved: usize, why: &str) -> NotTransferred {
    NotTransferred {
        is_missing: false,
        moved,
        why: why.to_owned(),
    }
}

/// Fetches messages, each with its delivery tag and the number of those that were ready behind it.
async fn fetch(talk: &mut Talk, order: &Transfer) -> Result<Vec<(u64, u64, Message)>, Refusal> {
    talk.ask(&ConfirmSelect { no_wait: false }).await?;
    let (mut fetched, mut bytes) = (Vec::new(), 0);
    while fetched.len() < order.limit && bytes < BYTES_MAX {
        let get = BasicGet {
            queue: &order.from,
            no_ack: false,
        };
        let Event::Message(message) = talk.ask(&get).await? else {
            break;
        };
        let Ok(Method::BasicGetOk(ok)) = Method::decode(&message.method) else {
            break;
        };
        let (tag, left) = (ok.delivery_tag, ok.message_count);
        bytes += message.body.len() + message.properties.len();
        fetched.push((tag, left.into(), message));
    }
    Ok(fetched)
}

/// Publishes the messages. Returns whether the target has accepted each, and why it has not.
async fn publish(
    talk: &mut Talk,
    order: &Transfer,
    fetched: Vec<(u64, u64, Message)>,
) -> (Vec<bool>, Option<String>) {
    let publish = BasicPublish {
        mandatory: true,
        ..BasicPublish::to("", &order.to)
    };
    let mut confirms = Confirms::new(fetched.len());
    for (_, _, message) in fetched {
        if let Err(refusal) = talk.send(&publish, &message.properties, &message.body) {
            return (confirms.accepted(), Some(refusal.text));
        }
    }
    let mut failure = None;
    while confirms.is_pending() {
        match talk.answer().await {
            Ok(Event::Confirm {
                number,
                multiple,
                is_accepted,
            }) => {
                confirms.note(number, multiple, is_accepted);
                if !is_accepted {
                    failure = Some(format!("queue '{}' rejects messages", order.to));
                }
            }
            // A returned message is confirmed, too. What has no confirm yet counts as not moved: the queue is gone.
            Ok(Event::Message(_)) => {
                failure = Some(format!("queue '{}' was deleted meanwhile", order.to));
                break;
            }
            Ok(_) => {}
            Err(refusal) => {
                failure = Some(refusal.text);
                break;
            }
        }
    }
    (confirms.accepted(), failure)
}

/// Acknowledges what the target has, and returns the rest to its place. The next request finds that done.
async fn settle(talk: &mut Talk, tags: &[u64], accepted: &[bool]) -> Result<(), Refusal> {
    let Some(last) = tags.last() else {
        return Ok(());
    };
    if accepted.iter().all(|is| *is) {
        talk.say(&BasicAck::up_to(*last))?;
    } else {
        for (tag, _) in tags.iter().zip(accepted).filter(|(_, is)| **is) {
            talk.say(&BasicAck::one(*tag))?;
        }
        talk.say(&BasicNack {
            delivery_tag: 0,
            multiple: true,
            requeue: true,
        })?;
    }
    let last = BasicQos::of_each(0);
    talk.ask(&last).await?;
    Ok(())
}

/// The outcomes of publications that are numbered from 1 on.
struct Confirms(Vec<Option<bool>>);

impl Confirms {
    fn new(count: usize) -> Self {
        Self(vec![None; count])
    }

    fn note(&mut self, number: u64, multiple: bool, is_accepted: bool) {
        let end = usize::try_from(number)
            .unwrap_or(usize::MAX)
            .min(self.0.len());
        let first = if multiple { 0 } else { end.saturating_sub(1) };
        for outcome in &mut self.0[first..end] {
            outcome.get_or_insert(is_accepted);
        }
    }

    fn is_pending(&self) -> bool {
        self.0.iter().any(Option::is_none)
    }

    fn accepted(&self) -> Vec<bool> {
        self.0
            .iter()
            .map(|outcome| *outcome == Some(true))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Confirms, what they accept, and whether others are to come.
    type Row<'r> = (&'r [(u64, bool, bool)], [bool; 3], bool);

    #[test]
    fn outcomes_follow_from_confirms() {
        let rows: [Row<'_>; 6] = [
            (&[], [false; 3], true),
            (&[(3, true, true)], [true; 3], false),
            (&[(2, false, true)], [false, true, false], true),
            (
                &[(2, false, false), (3, true, true)],
                [true, false, true],
                false,
            ),
            (
                &[(2, true, true), (3, false, false)],
                [true, true, false],
                false,
            ),
            (&[(9, true, true), (0, false, false)], [true; 3], false),
        ];
        for (confirms, accepted, is_pending) in rows {
            let mut found = Confirms::new(3);
            for (number, multiple, is_accepted) in confirms {
                found.note(*number, *multiple, *is_accepted);
            }
            assert_eq!(found.accepted(), accepted, "{confirms:?}");
            assert_eq!(found.is_pending(), is_pending, "{confirms:?}");
        }
    }
}
