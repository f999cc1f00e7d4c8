//! The topic aliases of the messages that a connection is sent.
//!
//! The first topics of a connection have them, each for good: a topic that is sent once costs no other one its alias.

/// The topics of a connection in the order of their aliases, which begin with 1.
#[derive(Debug)]
pub(crate) struct Aliases {
    topics: Vec<Box<str>>,
    max: u16,
    /// Bytes of memory of the topics.
    bytes: usize,
}

/// The alias of a message's topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alias {
    pub(crate) number: u16,
    /// The client knows it: the topic is left out.
    pub(crate) is_known: bool,
}

/// A topic that is no longer than the alias' property costs less than an alias.
const TOPIC_BYTES_MIN: usize = 4;

/// Memory of an alias beside its topic.
const ALIAS_BYTES: usize = 32;

impl Aliases {
    /// Those of a connection that has sent none. Its client takes aliases up to `max`.
    pub(crate) fn new(max: u16) -> Self {
        Self {
            topics: Vec::new(),
            max,
            bytes: 0,
        }
    }

    /// The alias of a topic, or the next one; none if there is no further one.
    pub(crate) fn find(&self, topic: &str) -> Option<Alias> {
        if topic.len() < TOPIC_BYTES_MIN {
            return None;
        }
        let known = self.topics.iter().position(|known| **known == *topic);
        let place = known.unwrap_or(self.topics.len());
        let number = u16::try_from(place + 1).ok()?;
        (number <= self.max).then_some(Alias {
            number,
            is_known: known.is_some(),
        })
    }

    /// A message with the topic and the next alias is on its way. Returns the bytes of memory of the alias.
    pub(crate) fn add(&mut self, topic: &str) -> usize {
        let bytes = topic.len() + ALIAS_BYTES;
        self.topics.push(topic.into());
        self.bytes += bytes;
        bytes
    }

    /// Bytes of memory of the aliases.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_topics_have_aliases() {
        let mut aliases = Aliases::new(2);
        let alias = |number, is_known| Some(Alias { number, is_known });
        assert_eq!(aliases.find("a/b"), None);
        assert_eq!(aliases.find("first"), alias(1, false));
        assert_eq!(aliases.bytes(), 0);
        aliases.add("first");
        assert_eq!(aliases.find("second"), alias(2, false));
        aliases.add("second");
        assert_eq!(aliases.find("third"), None);
        assert_eq!(aliases.find("first"), alias(1, true));
        assert_eq!(aliases.bytes(), 2 * ALIAS_BYTES + 11);
    }
}
