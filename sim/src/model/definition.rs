//! What a session has said of something.

use crate::Name;
use crate::reflect::Defined;

#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) by: Name,
    pub(crate) of: Defined,
    pub(crate) uri: String,
    pub(crate) description: String,
}
