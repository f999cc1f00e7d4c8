//! Fields of octets: reading and writing.

use std::sync::Arc;

use crosstie_amqp::{Table, TableBuf};

use crate::broken::Broken;

/// The octets that are left to read.
pub(crate) struct Reader<'b>(pub(crate) &'b [u8]);

impl<'b> Reader<'b> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'b [u8], Broken> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Broken::Body)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Broken::Body)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn octet(&mut self) -> Result<u8, Broken> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Broken> {
        match self.octet()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Broken::Body),
        }
    }

    pub(crate) fn short(&mut self) -> Result<u32, Broken> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn long(&mut self) -> Result<u64, Broken> {
        self.array().map(u64::from_be_bytes)
    }

    /// Octets with a length prefix.
    pub(crate) fn octets(&mut self) -> Result<&'b [u8], Broken> {
        let count = self.short()?;
        self.take(count as usize)
    }

    pub(crate) fn text(&mut self) -> Result<&'b str, Broken> {
        str::from_utf8(self.octets()?).map_err(|_| Broken::Body)
    }

    pub(crate) fn shared_text(&mut self) -> Result<Arc<str>, Broken> {
        self.text().map(Arc::from)
    }

    pub(crate) fn table(&mut self) -> Result<TableBuf, Broken> {
        let table = Table::from_bytes(self.octets()?);
        table.map(TableBuf::from).map_err(|_| Broken::Body)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends octets with a length prefix.
pub(crate) fn put(octets: &[u8], out: &mut Vec<u8>) {
    // Content of a frame, whose length has 32 bits.
    out.extend_from_slice(&(octets.len() as u32).to_be_bytes());
    out.extend_from_slice(octets);
}

pub(crate) fn put_table(table: &TableBuf, out: &mut Vec<u8>) {
    put(table.as_table().bytes(), out);
}
