//! A session's definition of a URI.

use crate::Name;
use crate::reflect::Defined;

#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) by: Name,
    pub(crate) of: Defined,
    pub(crate) uri: String,
    pub(crate) description: String,
}
