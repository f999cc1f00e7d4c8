//! Tracks frame boundaries in a spliced byte stream, so that this node can insert a frame of its own between two
//! frames.

/// Size of a frame's header; a method's class and method id follow.
const HEAD: usize = 7;
const METHOD: usize = HEAD + 4;

/// Parses the frames that an owner sends to a client.
#[derive(Default)]
pub(super) struct Boundary {
    head: [u8; METHOD],
    known: usize,
    /// Bytes of the frame that have not passed yet, behind the known part.
    left: usize,
    is_over: bool,
}

impl Boundary {
    /// Takes the bytes that are relayed.
    pub(super) fn pass(&mut self, mut octets: &[u8]) {
        while let Some((first, rest)) = octets.split_first() {
            if self.left > 0 {
                let passed = self.left.min(octets.len());
                self.left -= passed;
                octets = &octets[passed..];
                if self.left == 0 {
                    self.known = 0;
                }
                continue;
            }
            self.head[self.known] = *first;
            self.known += 1;
            octets = rest;
            self.judge();
        }
    }

    /// Whether the last frame was relayed completely.
    pub(super) fn is_between(&self) -> bool {
        self.known == 0
    }

    /// Whether the owner has sent `connection.close` or its answer: then this node adds nothing.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    fn judge(&mut self) {
        let [kind, _, _, a, b, c, d, method @ ..] = &self.head;
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        // Includes the frame-end octet.
        let whole = length.saturating_add(1);
        let is_method = *kind == 1 && length >= method.len();
        match self.known {
            HEAD if !is_method => self.left = whole,
            METHOD => {
                // connection.close, connection.close-ok.
                self.is_over |= matches!(*method, [0, 10, 0, 50 | 51]);
                self.left = whole - method.len();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A method's frame with its frame-end octet.
    fn method(class: u8, method: u8, more: usize) -> Vec<u8> {
        let mut frame = vec![1, 0, 0, 0, 0, 0, 4 + more as u8, 0, class, 0, method];
        frame.extend(vec![0xce; more + 1]);
        frame
    }

    #[test]
    fn frame_boundaries_are_found_for_any_split() {
        let heartbeat = vec![8, 0, 0, 0, 0, 0, 0, 0xce];
        let body = [&[3, 0, 1, 0, 0, 0, 3][..], &[1, 2, 3, 0xce]].concat();
        let frames = [method(60, 60, 9), heartbeat, body, method(10, 50, 20)];
        for step in 1..40 {
            let mut boundary = Boundary::default();
            let mut ends = Vec::new();
            for frame in &frames {
                for part in frame.chunks(step) {
                    boundary.pass(part);
                    ends.push(boundary.is_between());
                }
                assert_eq!(ends.pop(), Some(true));
                assert!(!ends.iter().any(|is_end| *is_end));
                ends.clear();
            }
            assert!(boundary.is_over());
            let mut at_once = Boundary::default();
            at_once.pass(&frames[..3].concat());
            assert!(at_once.is_between() && !at_once.is_over());
        }
    }
}
