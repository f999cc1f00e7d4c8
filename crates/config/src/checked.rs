//! A checked configuration, as a file gives it.

use std::collections::BTreeSet;
use std::fmt;

use crate::tree::Node;

/// A checked configuration as a file gives it, with the values of variables and of secrets.
#[derive(Clone, PartialEq)]
pub struct Tree {
    pub(crate) root: Node,
    /// The environment variables that secrets come from.
    pub(crate) secrets: BTreeSet<String>,
}

/// It holds secrets.
impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tree")
    }
}
