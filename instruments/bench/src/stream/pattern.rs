//! The content of streams: bytes that encode their position, so that a lost, doubled or misplaced piece of any likely
//! size is detected.

/// Repeats after this many bytes: a prime, so that no page, buffer or write divides it.
const PERIOD: usize = 65_521;

/// An endless stream with access to any part.
pub(crate) struct Pattern {
    bytes: Vec<u8>,
}

impl Pattern {
    /// For parts of up to `longest` bytes.
    pub(crate) fn new(longest: usize) -> Self {
        // Marsaglia's xorshift: no two places within the period look alike.
        let mut state = 0x2545_f491_u32;
        let period: Vec<u8> = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state.to_be_bytes()[0]
        })
        .take(PERIOD)
        .collect();
        let bytes = period.iter().copied().cycle().take(PERIOD + longest);
        Self {
            bytes: bytes.collect(),
        }
    }

    /// The part of the stream that begins at `offset`.
    pub(crate) fn at(&self, offset: u64, length: usize) -> &[u8] {
        let begin = (offset % PERIOD as u64) as usize;
        &self.bytes[begin..begin + length]
    }
}

/// Foreign bytes for a message: their beginning, with unprintable ones escaped.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 40;
    let more = if bytes.len() > SHOWN_MAX { "…" } else { "" };
    let begin = bytes[..bytes.len().min(SHOWN_MAX)].escape_ascii();
    format!("`{begin}{more}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_does_not_depend_on_how_the_stream_is_cut() {
        let pattern = Pattern::new(40_000);
        let whole: Vec<u8> = (0..5)
            .flat_map(|n| pattern.at(n * 40_000, 40_000))
            .copied()
            .collect();
        for (offset, length) in [(0, 1), (65_520, 2), (65_521, 10), (131_000, 40_000)] {
            assert_eq!(
                pattern.at(offset as u64, length),
                &whole[offset..offset + length]
            );
        }
        for shift in [1, 4096, 16_384, 32_768, 65_536] {
            assert_ne!(pattern.at(0, 1000), pattern.at(shift, 1000));
        }
    }

    #[test]
    fn strangers_are_quoted() {
        assert_eq!(shown(b"HTTP/1.1 400\r\n"), r"`HTTP/1.1 400\r\n`");
        assert_eq!(shown(&[0; 41]), format!("`{}…`", r"\x00".repeat(40)));
    }
}
