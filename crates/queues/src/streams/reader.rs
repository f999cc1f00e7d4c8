//! The place of a consumer in a stream, and the pages that it is sent next.

use std::collections::VecDeque;
use std::sync::Arc;

use crosstie_amqp::Value;

use super::{StreamFilter, StreamMessage, StreamPage, StreamPlace};
use crate::keys::ConsumerKey;
use crate::ledger::Ledger;
use crate::topology::{age_ms, erlang_term, kind};
use crate::{QueueId, QueueKey, Time};

#[derive(Debug)]
pub(crate) struct Reader {
    /// Where the page behind those that it has begins.
    from: StreamFrom,
    /// Earlier messages are left out.
    offset_min: u64,
    /// The messages that it wants; `None`: all.
    filter: Option<Arc<StreamFilter>>,
    pages: VecDeque<Arc<StreamPage>>,
    /// The next message in the first page.
    at: usize,
    is_reading: bool,
}

/// The place at which a page is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFrom {
    /// At the first message with this offset or a higher one.
    Offset(u64),
    Place(StreamPlace),
    /// At the first message of that time or later.
    Since(Time),
}

/// A page that the keeper is to read.
#[derive(Clone, Debug)]
pub struct StreamWant {
    pub stream: QueueKey,
    pub id: QueueId,
    pub from: StreamFrom,
    /// The offset behind the last message that may be read.
    pub end: u64,
    /// The messages that are wanted; `None`: all.
    pub filter: Option<Arc<StreamFilter>>,
    pub(crate) reader: ConsumerKey,
}

/// The value of `x-stream-offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    First,
    Last,
    Next,
    Offset(u64),
    Since(Time),
}

impl Start {
    /// Of a consumer without the argument: the next message. An error is the reason, in RabbitMQ's words.
    pub(crate) fn parse(now: Time, value: Option<Value<'_>>) -> Result<Self, String> {
        let Some(value) = value else {
            return Ok(Self::Next);
        };
        let parsed = match value {
            Value::LongString(b"first") => Some(Self::First),
            Value::LongString(b"last") => Some(Self::Last),
            Value::LongString(b"next") => Some(Self::Next),
            Value::LongString(text) => {
                let age = str::from_utf8(text).ok().and_then(age_ms);
                age.map(|age_ms| Self::Since(Time(now.0.saturating_sub(age_ms))))
            }
            Value::Timestamp(seconds) => Some(Self::Since(Time(seconds.saturating_mul(1_000)))),
            value => value
                .as_i64()
                .map(|offset| Self::Offset(offset.try_into().unwrap_or(0))),
        };
        parsed.ok_or_else(|| {
            let (kind, term) = (kind(value), erlang_term(value));
            format!("{{invalid_stream_offset_arg,{{{kind},{term}}}}}")
        })
    }
}

impl Reader {
    pub(crate) fn new(from: StreamFrom, filter: Option<StreamFilter>) -> Self {
        let offset_min = match from {
            StreamFrom::Offset(offset) => offset,
            StreamFrom::Place(place) => place.offset,
            StreamFrom::Since(_) => 0,
        };
        Self {
            from,
            offset_min,
            filter: filter.map(Arc::new),
            pages: VecDeque::new(),
            at: 0,
            is_reading: false,
        }
    }

    /// The next message, with its page. `None`: it has none, or this input's steps are over, and [`Self::has_page`].
    pub(crate) fn front(&mut self, ledger: &mut Ledger) -> Option<(Arc<StreamPage>, usize)> {
        while let Some(page) = self.pages.front() {
            match page.message(self.at) {
                Some(message) if self.wants(&message) => {
                    return Some((Arc::clone(page), self.at));
                }
                Some(_) if ledger.steps.is_over() => return None,
                Some(_) => {
                    self.at += 1;
                    ledger.steps.spend(1);
                }
                None => self.drop_page(ledger),
            }
        }
        None
    }

    /// Pages of the last written messages have others, too.
    fn wants(&self, message: &StreamMessage<'_>) -> bool {
        let filter = self.filter.as_ref();
        filter.is_none_or(|filter| filter.accepts(message.properties))
    }

    pub(crate) fn has_page(&self) -> bool {
        !self.pages.is_empty()
    }

    /// Moves on behind the message that it was sent.
    pub(crate) fn advance(&mut self, message: &StreamMessage<'_>) {
        self.at += 1;
        self.offset_min = message.offset + 1;
    }

    /// Adds the page that it waited for. Messages that it is not to be sent are left out.
    pub(crate) fn add(&mut self, page: Arc<StreamPage>, ledger: &mut Ledger) {
        self.is_reading = false;
        self.from = StreamFrom::Place(page.after);
        if self.pages.is_empty() {
            self.at = page.before(self.offset_min);
        }
        if page.is_empty() {
            return;
        }
        if page.hold() {
            ledger.hold_bytes(page.memory_bytes());
        }
        self.pages.push_back(page);
    }

    /// Whether a page begins where it goes on.
    pub(crate) fn fits(&self, page: &StreamPage) -> bool {
        match self.from {
            _ if self.is_reading || !self.pages.is_empty() => false,
            StreamFrom::Offset(offset) => (page.from.offset..page.after.offset).contains(&offset),
            StreamFrom::Place(place) => {
                (page.from.offset..page.after.offset).contains(&place.offset)
            }
            StreamFrom::Since(_) => false,
        }
    }

    /// Whether messages before `end` are to be read.
    pub(crate) fn is_behind(&self, end: u64) -> bool {
        match self.from {
            StreamFrom::Offset(offset) => offset < end,
            StreamFrom::Place(place) => place.offset < end,
            StreamFrom::Since(_) => true,
        }
    }

    /// Whether the next page should be read while the present one is sent.
    pub(crate) fn wants_more(&self, end: u64) -> bool {
        let is_short = match self.pages.front() {
            Some(page) => self.pages.len() == 1 && self.at >= page.len() / 2,
            None => false,
        };
        is_short && !self.is_reading && self.is_behind(end)
    }

    pub(crate) fn is_reading(&self) -> bool {
        self.is_reading
    }

    pub(crate) fn begin_reading(&mut self) {
        self.is_reading = true;
    }

    /// The read failed; it is to be repeated.
    pub(crate) fn from(&self) -> StreamFrom {
        self.from
    }

    pub(crate) fn filter(&self) -> Option<Arc<StreamFilter>> {
        self.filter.clone()
    }

    /// Lets go of its pages.
    pub(crate) fn end(&mut self, ledger: &mut Ledger) {
        while !self.pages.is_empty() {
            self.drop_page(ledger);
        }
    }

    fn drop_page(&mut self, ledger: &mut Ledger) {
        if let Some(page) = self.pages.pop_front()
            && page.release()
        {
            ledger.free_bytes(page.memory_bytes());
        }
        self.at = match self.pages.front() {
            Some(page) => page.before(self.offset_min),
            None => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(10_000_000);

    #[test]
    fn every_offset_has_a_place_in_the_stream() {
        #[track_caller]
        fn check(value: Value<'_>, expected: Start) {
            assert_eq!(Start::parse(NOW, Some(value)), Ok(expected));
        }
        assert_eq!(Start::parse(NOW, None), Ok(Start::Next));
        check(Value::I64(i64::MAX), Start::Offset(i64::MAX as u64));
        check(Value::I64(i64::MIN), Start::Offset(0));
        check(Value::I8(-1), Start::Offset(0));
        check(Value::Timestamp(0), Start::Since(Time(0)));
        check(Value::Timestamp(u64::MAX), Start::Since(Time(u64::MAX)));
        check(Value::LongString(b"1m"), Start::Since(Time(9_940_000)));
        // Longer ago than the clock's begin.
        check(Value::LongString(b"99Y"), Start::Since(Time(0)));
    }

    #[test]
    fn other_texts_and_types_are_refused() {
        for text in ["5", "First", "first ", "-1h", "1h30m", "1.5h", "h", "1 h"] {
            let parsed = Start::parse(NOW, Some(Value::LongString(text.as_bytes())));
            let expected = format!("{{invalid_stream_offset_arg,{{longstr,<<\"{text}\">>}}}}");
            assert_eq!(parsed, Err(expected));
        }
        for value in [
            Value::LongString(b""),
            Value::LongString(b"\xff"),
            Value::LongString(b"99999999999999999999h"),
            Value::Bool(true),
            Value::Void,
            Value::F64(5.0),
        ] {
            assert!(Start::parse(NOW, Some(value)).is_err(), "{value:?}");
        }
    }
}
