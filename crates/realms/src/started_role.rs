//! A role of a running realm.

use std::time::SystemTime;

use crosstie_routing::Role;

/// A role that sessions may have.
#[derive(Clone)]
pub struct StartedRole {
    pub role: Role,
    pub started: SystemTime,
}
