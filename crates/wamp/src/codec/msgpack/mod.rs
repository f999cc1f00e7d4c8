//! MessagePack, in its version 5: text and binary are different things.

mod readable;
mod reader;
mod writer;

pub(super) use readable::check as check_readable;
pub(super) use reader::MsgPackReader;
pub(super) use writer::MsgPackWriter;
