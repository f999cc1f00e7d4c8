//! JSON messages with lone surrogates.

use std::ops::ControlFlow;
use std::time::Instant;

use crosstie_config::LoneSurrogates;
use crosstie_front::counters::{Counter, counters};
use crosstie_wamp::Message;
use crosstie_wamp::codec::{self, DecodeError};

use crate::session::{Session, State};

impl Session {
    /// Handles a JSON message with a lone surrogate. Such a message follows from a mistake in the sender's program (a
    /// browser cuts a text inside an emoji), which shall not end its session.
    #[cold]
    pub(super) fn handle_lone_surrogates(
        &mut self,
        bytes: &[u8],
        fault: &DecodeError,
        now: Instant,
    ) -> ControlFlow<()> {
        let Some((replaced, count)) = codec::replace_lone_surrogates(bytes) else {
            return self.message_fault(bytes, fault);
        };
        let serializer = self.peer.wire.serializer;
        let mut is_doubtful = false;
        let limits = &self.entrance.decoding;
        let decoded = codec::decode_to_pass_on(serializer, &replaced, limits, &mut is_doubtful);
        let message = match decoded {
            Ok(message) => message,
            Err(e) => return self.message_fault(bytes, &e),
        };
        // HELLO, GOODBYE and ABORT are not requests, and cannot be refused.
        if let State::Joined { realm, key } = &self.state
            && realm.lone_surrogates == LoneSurrogates::Refuse
            && !matches!(
                message,
                Message::Hello { .. } | Message::Goodbye { .. } | Message::Abort { .. }
            )
        {
            counters().count(Counter::LoneSurrogatesRefused);
            let text = "a text has half of a character in it (a lone surrogate)";
            let declined = realm.decline(now, *key, &message, text);
            return self.handled(declined);
        }
        counters().add(Counter::LoneSurrogatesReplaced, count as u64);
        match is_doubtful {
            true => self.handle_doubtful(&message, &replaced, None, now),
            false => self.handle(&message, &replaced, None, now),
        }
    }
}
