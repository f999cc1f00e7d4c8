//! The services for bytes without messages: echo, discard and chargen (RFC 862 to 864).

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use crosstie_transport::{Connection, Outcome, Protocol};

use crate::Statistics;
use crate::serve::Serving;

/// Sends received bytes back.
pub(crate) struct Echo {
    connection: Arc<Connection>,
    statistics: Arc<Statistics>,
}

impl Echo {
    pub(crate) fn new(connection: &Arc<Connection>, serving: &Serving) -> Self {
        Self {
            connection: Arc::clone(connection),
            statistics: Arc::clone(&serving.statistics),
        }
    }
}

impl Protocol for Echo {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        let count = input.len();
        match self.connection.send(input) {
            Ok(()) => {
                self.statistics.add_echoed(0, count as u64);
                Outcome::Hold {
                    consumed: count,
                    wanted: 0,
                }
            }
            Err(_) => Outcome::Close,
        }
    }
}

/// Discards received bytes.
pub(crate) struct Discard;

impl Protocol for Discard {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        Outcome::consumed(input.len())
    }
}

/// Sends characters as fast as they are taken.
pub(crate) struct Chargen {
    connection: Arc<Connection>,
}

/// Characters of a line, and number of characters to choose from: the printable ones.
const LINE_BYTES: usize = 72;
const CHARACTERS: std::ops::Range<u8> = b' '..0x7F;

impl Chargen {
    pub(crate) fn new(connection: &Arc<Connection>) -> Self {
        Self {
            connection: Arc::clone(connection),
        }
    }

    /// Continues until nothing can be sent any more.
    pub(crate) async fn run(self) {
        let pattern = pattern();
        while self.connection.append_shared(&pattern).is_ok() {
            // No input ends here, after which the thread would flush.
            crosstie_transport::uncork();
            self.connection.sent().await;
            // Yields to others, also with a peer that takes everything at once.
            tokio::task::yield_now().await;
        }
    }
}

/// Whole cycles of the lines that RFC 864 suggests, each beginning one character later than the one before. All
/// connections send the same bytes.
fn pattern() -> Bytes {
    const TURNS: usize = 9;
    static PATTERN: OnceLock<Bytes> = OnceLock::new();
    let pattern = PATTERN.get_or_init(|| {
        let lines = CHARACTERS.len() * TURNS;
        let lines = (0..lines).flat_map(|line| {
            let characters = CHARACTERS.cycle().skip(line % CHARACTERS.len());
            characters.take(LINE_BYTES).chain(*b"\r\n")
        });
        lines.collect()
    });
    pattern.clone()
}

/// Counts a connection, for as long as this lives.
pub(crate) struct Connected(Arc<Statistics>);

impl Connected {
    pub(crate) fn new(statistics: &Arc<Statistics>) -> Self {
        statistics.count_in();
        Self(Arc::clone(statistics))
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.count_out();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_begin_one_character_later_each_time() {
        let pattern = pattern();
        let lines: Vec<_> = pattern.split_inclusive(|byte| *byte == b'\n').collect();
        assert_eq!(lines.len() % CHARACTERS.len(), 0, "whole turns");
        for (at, line) in lines.iter().enumerate() {
            assert_eq!(line.len(), LINE_BYTES + 2, "line {at}");
            assert!(line.ends_with(b"\r\n"), "line {at}");
            assert_eq!(usize::from(line[0] - b' '), at % CHARACTERS.len());
        }
        assert!(lines[0].starts_with(b" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFG"));
        assert!(lines[94].starts_with(b"~ !\"#"));
    }
}
