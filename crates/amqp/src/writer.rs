//! Writing arguments: the counterpart of [`crate::Reader`].

/// Appends arguments. Bits that follow each other share bytes.
pub(crate) struct Writer<'o> {
    out: &'o mut Vec<u8>,
    /// How many bits of the last octet are used; 0: the last octet holds none.
    bits: u8,
}

impl<'o> Writer<'o> {
    pub(crate) fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out, bits: 0 }
    }

    pub(crate) fn octet(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    pub(crate) fn short(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn long(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn longlong(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn bit(&mut self, value: bool) {
        if self.bits == 0 || self.bits == 8 {
            self.out.push(0);
            self.bits = 0;
        }
        if let Some(last) = self.out.last_mut() {
            *last |= u8::from(value) << self.bits;
        }
        self.bits += 1;
    }

    /// A text longer than a short string can be is cut at a character's end.
    pub(crate) fn shortstr(&mut self, value: &str) {
        let value = &value[..value.floor_char_boundary(255)];
        self.octet(value.len() as u8);
        self.bytes(value.as_bytes());
    }

    pub(crate) fn longstr(&mut self, value: &[u8]) {
        self.long(value.len() as u32);
        self.bytes(value);
    }

    pub(crate) fn table(&mut self, value: crate::Table<'_>) {
        self.longstr(value.bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.bits = 0;
        self.out.extend_from_slice(bytes);
    }
}
