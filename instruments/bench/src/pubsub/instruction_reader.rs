//! A driver's standard input, read without a buffer that poll does not see.

use std::io::{self, Stdin};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::worker::Instruction;
use crate::process::WorkerError;

pub(super) struct InstructionReader {
    input: Stdin,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Heard {
    Nothing,
    Instruction(Instruction),
    /// The bench has ended its instructions.
    End,
}

impl Default for InstructionReader {
    fn default() -> Self {
        Self {
            input: io::stdin(),
            bytes: Vec::new(),
        }
    }
}

impl InstructionReader {
    /// The next instruction, of which some bytes are there. Reads at most once.
    pub(super) fn hear(&mut self) -> Result<Heard, WorkerError> {
        if let Some(instruction) = self.take_line()? {
            return Ok(Heard::Instruction(instruction));
        }
        let mut bytes = [0; 4096];
        match rustix::io::read(&self.input, &mut bytes) {
            Ok(0) => return Ok(Heard::End),
            Ok(length) => self.bytes.extend_from_slice(&bytes[..length]),
            Err(Errno::INTR | Errno::AGAIN) => return Ok(Heard::Nothing),
            Err(error) => return Err(io::Error::from(error).into()),
        }
        Ok(self.take_line()?.map_or(Heard::Nothing, Heard::Instruction))
    }

    /// Whether bytes were read that are not handled yet.
    pub(super) fn has_more(&self) -> bool {
        self.bytes.contains(&b'\n')
    }

    fn take_line(&mut self) -> Result<Option<Instruction>, WorkerError> {
        let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let instruction = serde_json::from_slice(&self.bytes[..end])?;
        self.bytes.drain(..=end);
        Ok(Some(instruction))
    }
}

impl AsFd for InstructionReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }
}
