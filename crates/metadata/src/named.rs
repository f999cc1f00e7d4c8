//! Names that fit into AMQP's short strings.

use std::sync::Arc;

use crate::Refusal;

const NAME_BYTES_MAX: usize = 255;

pub(crate) fn name(what: &str, text: &str) -> Result<Arc<str>, Refusal> {
    match text.len() {
        0..=NAME_BYTES_MAX => Ok(text.into()),
        bytes => Err(Refusal::invalid(format!(
            "{what}: expected a name of at most {NAME_BYTES_MAX} bytes, got {bytes}"
        ))),
    }
}
