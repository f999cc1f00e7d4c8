//! AMQP 0-9-1 and 0-8 on the wire: frames, methods, tables, properties. Bytes in, values out, and back.
//!
//! Everything decoded borrows from the input; a message's properties and body are checked and
//! passed on as the bytes they came in. Section numbers are of the AMQP 0-9-1 specification;
//! where RabbitMQ's errata differ from it (the tags of field values, `basic.nack`,
//! `confirm.select`, `exchange.bind`, `connection.blocked`), its clients and this crate follow
//! the errata.
//!
//! Never: IO, a clock, a queue.

mod changes;
pub mod frame;
pub mod method;
mod properties;
mod reader;
mod reply_code;
mod table;
mod version;
mod writer;

pub use changes::Changes;
pub use frame::{Frame, FrameError, FrameKind};
pub use method::{Arguments, Method, MethodError};
pub use properties::{BasicProperties, ContentHeader, DeliveryMode, Properties, PropertiesError};
pub use reader::{ReadError, Reader};
pub use reply_code::ReplyCode;
pub use table::{Array, Table, TableBuf, Value};
pub use version::{PROTOCOL_HEADER, UnknownHeader, Version};
