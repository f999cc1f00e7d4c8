//! MessagePack, in its version 5: text and binary are different things.

mod reader;
mod writer;

pub(super) use reader::MsgPackReader;
pub(super) use writer::MsgPackWriter;
