//! Ten thousands of subscriptions: patterns that match everything half way, and plain ones.

use crosstie_wamp::{MatchPolicy, Message, PublishOptions, RequestId, SubscribeOptions};

use super::{Answers, text_arguments};
use crate::hostile::strike::Strike;
use crate::process::WorkerError;
use crate::wamp::pipe::Pipe;

const WILDCARD_SESSIONS: usize = 4;
const PLAIN_SESSIONS: usize = 100;
/// The default maximum of one session.
const OF_A_SESSION: usize = 10_000;
const PUBLICATIONS: usize = 20;
const COMPONENTS: usize = 128;
const LAST: usize = COMPONENTS - 1;

/// Patterns of `a` and wildcards: a topic of `a` walks down every branch, and has another end.
pub(in crate::hostile) fn wildcards(strike: &mut Strike) -> Result<(), WorkerError> {
    let mut sessions = Vec::new();
    for session in 0..WILDCARD_SESSIONS {
        let options = SubscribeOptions::matching(MatchPolicy::Wildcard);
        let topic = |number| pattern((session * OF_A_SESSION + number) as u64);
        sessions.push(subscribe_many(strike, &options, topic)?);
    }
    let mut publisher = strike.session()?;
    let payload = text_arguments(publisher.serializer(), b'x', 1);
    for number in 1..=PUBLICATIONS as u64 {
        publisher.push(&Message::Publish {
            request: RequestId(number),
            options: PublishOptions::acknowledged(),
            topic: topic().into(),
            payload: payload.as_payload(),
        })?;
    }
    publisher.flush()?;
    Answers::read(&mut publisher, PUBLICATIONS as u64)?.note(strike, "publications");
    Ok(())
}

/// Topics without another subscriber.
pub(in crate::hostile) fn plain(strike: &mut Strike) -> Result<(), WorkerError> {
    let mut sessions = Vec::new();
    for session in 0..strike.few(PLAIN_SESSIONS) {
        let topic = |number| format!("crosstie.hostile.s{session}.t{number}");
        let options = SubscribeOptions::default();
        sessions.push(subscribe_many(strike, &options, topic)?);
    }
    Ok(())
}

fn subscribe_many(
    strike: &mut Strike,
    options: &SubscribeOptions,
    topic: impl Fn(usize) -> String,
) -> Result<Pipe, WorkerError> {
    let mut pipe = strike.session()?;
    let subscriptions = strike.size(OF_A_SESSION);
    for number in 0..subscriptions {
        pipe.push(&Message::Subscribe {
            request: RequestId(1 + number as u64),
            options: options.clone(),
            topic: topic(number).into(),
        })?;
    }
    pipe.flush()?;
    Answers::read(&mut pipe, subscriptions as u64)?.note(strike, "subscriptions");
    Ok(pipe)
}

/// A topic that every pattern matches except for its last component.
fn topic() -> String {
    let mut topic = "a.".repeat(LAST);
    topic.push('z');
    topic
}

/// A pattern of `a` and wildcards that differs from every other number's.
fn pattern(number: u64) -> String {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut pattern = String::new();
    for at in 0..COMPONENTS {
        let bit = match at {
            // These distinguish the pattern, and the rest shares nothing with others.
            0..20 => number >> at & 1,
            // The topic differs here.
            LAST => 0,
            _ => {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state & 1
            }
        };
        if at > 0 {
            pattern.push('.');
        }
        if bit == 0 {
            pattern.push('a');
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_differ() {
        let all: std::collections::BTreeSet<_> = (0..40_000).map(pattern).collect();
        assert_eq!(all.len(), 40_000);
        assert!(
            all.iter()
                .all(|p| p.split('.').count() == COMPONENTS && p.ends_with('a'))
        );
        assert_eq!(topic().split('.').count(), COMPONENTS);
    }
}
