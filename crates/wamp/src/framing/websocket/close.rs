//! Close frames: a code, a reason, or nothing.

use std::str;

use crate::framing::FramingError;

/// A Close frame's payload. RFC 6455 section 5.5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseFrame<'a> {
    /// None: the frame was empty.
    pub code: Option<u16>,
    pub reason: &'a str,
}

impl<'a> CloseFrame<'a> {
    pub(super) fn read(payload: &'a [u8]) -> Result<Self, FramingError> {
        let Some((code, reason)) = payload.split_first_chunk() else {
            return match payload.is_empty() {
                true => Ok(Self {
                    code: None,
                    reason: "",
                }),
                false => Err(FramingError::CloseLength),
            };
        };
        let code = u16::from_be_bytes(*code);
        if !code_is_allowed(code) {
            return Err(FramingError::CloseCode { code });
        }
        let reason = str::from_utf8(reason).map_err(|_| FramingError::Utf8)?;
        Ok(Self {
            code: Some(code),
            reason,
        })
    }
}

/// Whether a code may be sent in a Close frame: RFC 6455 section 7.4, with the codes 1012 to 1014
/// that were registered later. 1004 to 1006 and 1015 only have meanings inside a program.
pub fn code_is_allowed(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}
