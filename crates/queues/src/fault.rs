//! Faults, which close a channel or a connection.

use crosstie_amqp::{Arguments, ReplyCode};

/// A fault of a client, in RabbitMQ's words: `NOT_FOUND - no queue 'q' in vhost '/'`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub code: ReplyCode,
    /// With the code's name in front.
    pub text: String,
    /// The method at fault; zeros if there is none.
    pub class_id: u16,
    pub method_id: u16,
}

impl Fault {
    /// A fault in method `M`.
    pub fn of<M: Arguments>(code: ReplyCode, text: impl AsRef<str>) -> Self {
        Self::in_method(code, (M::CLASS_ID, M::METHOD_ID), text)
    }

    /// A fault in the method of that class and number. A text that is longer than the wire can
    /// carry ends with three dots, as in RabbitMQ.
    pub fn in_method(code: ReplyCode, ids: (u16, u16), text: impl AsRef<str>) -> Self {
        let mut text = format!("{} - {}", code.name(), text.as_ref());
        if text.len() > TEXT_BYTES_MAX {
            text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX - DOTS.len()));
            text.push_str(DOTS);
        }
        Self {
            code,
            text,
            class_id: ids.0,
            method_id: ids.1,
        }
    }
}

/// Of a short string.
const TEXT_BYTES_MAX: usize = 255;
const DOTS: &str = "...";
