//! The record of a cluster in its directory, `cluster.json`: its plan, and the text of each file as it was written.
//!
//! A later command changes a file by the difference between the recorded text and the new one, so that edits of
//! others in the file stay, or are named if the change touches them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::plan::Plan;

/// The version of the record's form.
pub(super) const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) version: u32,
    pub(super) plan: Plan,
    /// Servers that were replaced, and may still be listed by JetStream.
    pub(super) leaving: Vec<String>,
    /// Texts by their paths in the directory.
    pub(super) written: BTreeMap<String, String>,
}

impl Record {
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            version: VERSION,
            plan,
            leaving: Vec::new(),
            written: BTreeMap::new(),
        }
    }
}
