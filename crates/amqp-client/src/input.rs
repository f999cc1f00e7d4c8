//! Received bytes that are not handled yet.

/// Bytes requested by one read, unless a frame is longer.
const READ_BYTES: usize = 64 << 10;

/// A buffer that is filled at its end and consumed at its front.
#[derive(Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// Space for a read; at least enough to complete the `wanted` bytes.
    pub(crate) fn room(&mut self, wanted: usize) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            // Returns the memory of a single large message.
            if self.bytes.len() > 16 * READ_BYTES && wanted < READ_BYTES {
                self.bytes = Vec::new();
            }
        }
        let bytes = wanted.max(self.end - self.start + READ_BYTES / 2);
        if self.bytes.len() - self.start < bytes {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            let bytes = bytes.max(READ_BYTES);
            if self.bytes.len() < bytes {
                self.bytes.resize(bytes, 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    /// Records that a read has put `bytes` there.
    pub(crate) fn has_come(&mut self, bytes: usize) {
        self.end += bytes;
    }

    pub(crate) fn take(&mut self, bytes: usize) -> &[u8] {
        let start = self.start;
        self.start += bytes;
        &self.bytes[start..self.start]
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }
}

#[cfg(test)]
mod tests {
    use super::Input;

    #[test]
    fn bytes_come_and_go_in_order() {
        let mut input = Input::default();
        let (mut put, mut taken) = (0_u32, 0_u32);
        for step in 1..2000_usize {
            let room = input.room(step * 300);
            assert!(room.len() >= 4);
            let bytes = room.len().min(step * 97) / 4 * 4;
            for bytes in room[..bytes].chunks_mut(4) {
                bytes.copy_from_slice(&put.to_be_bytes());
                put += 1;
            }
            input.has_come(bytes);
            let bytes = input.bytes().len() * 7 / 8 / 4 * 4;
            for bytes in input.take(bytes).chunks(4) {
                assert_eq!(bytes, taken.to_be_bytes());
                taken += 1;
            }
        }
        assert_eq!(input.bytes().len(), (put - taken) as usize * 4);
    }
}
