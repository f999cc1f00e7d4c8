//! JSON messages with half of a character in them.

use std::ops::ControlFlow;
use std::time::Instant;

use crosstie_config::LoneSurrogates;
use crosstie_wamp::Message;
use crosstie_wamp::codec::{self, DecodeError};

use crate::counters::{Counter, counters};
use crate::wamp::session::{Session, State};

impl Session {
    /// Handles a message in which a character was cut in halves, in the text of JSON. That is a slip of
    /// its sender's program (a browser cuts a text inside an emoji), which is not to cost it the
    /// session.
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
        let limits = &self.listening.decoding;
        let decoded = codec::decode_to_pass_on(serializer, &replaced, limits, &mut is_doubtful);
        let message = match decoded {
            Ok(message) => message,
            Err(e) => return self.message_fault(bytes, &e),
        };
        // HELLO, GOODBYE and ABORT are no requests that could be refused.
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
