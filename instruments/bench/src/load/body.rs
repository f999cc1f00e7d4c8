//! The content of a numbered message: its publisher and its number, then filling that is the same in all.

/// Bytes of a publisher and a number.
pub(crate) const HEAD_BYTES: usize = 12;

#[derive(Clone, Debug)]
pub(crate) struct Body(Vec<u8>);

impl Body {
    pub(crate) fn new(publisher: usize, bytes: usize) -> Self {
        let mut body = vec![b'x'; bytes.max(HEAD_BYTES)];
        body[..4].copy_from_slice(&(publisher as u32).to_be_bytes());
        Self(body)
    }

    pub(crate) fn numbered(&mut self, number: u64) -> &[u8] {
        self.0[4..HEAD_BYTES].copy_from_slice(&number.to_be_bytes());
        &self.0
    }

    /// The publisher and the number of a body of this size; `None` for any other content.
    pub(crate) fn read(&self, body: &[u8]) -> Option<(usize, u64)> {
        let (head, filling) = body.split_at_checked(HEAD_BYTES)?;
        if filling != &self.0[HEAD_BYTES..] {
            return None;
        }
        let (publisher, number) = head.split_first_chunk::<4>()?;
        let number = u64::from_be_bytes(number.try_into().ok()?);
        Some((u32::from_be_bytes(*publisher) as usize, number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_another_size_or_filling_is_none() {
        let model = Body::new(0, 20);
        let mut body = Body::new(7, 20);
        assert_eq!(model.read(body.numbered(1 << 40)), Some((7, 1 << 40)));
        assert_eq!(model.read(Body::new(7, 21).numbered(1)), None);
        assert_eq!(model.read(&[0; 20]), None);
        assert_eq!(model.read(&[0; 3]), None);
    }
}
