//! A node's directory: its location, its key, and the node that runs in it.
//!
//! Use: [`NodeDirectory::find`] chooses one, or reports that none exists. [`Occupied::take`] ensures that one node runs
//! in it, and [`Occupied::write`] announces that node. [`NodeKey::load_or_make`] provides the node's identity, and
//! [`RunDirectory::make`] a private directory for sockets. [`occupant`] tells other programs whether a node runs there.

mod find;
mod key;
mod key_file;
mod key_inspect;
mod pid_file;
mod regular;
mod replace;
mod run;

pub use self::find::{CONFIG_NAMES, FindError, NodeDirectory};
pub use self::key::{KeyError, KeyOrigin, LoadedKey, NodeKey};
pub use self::key_inspect::KeyFile;
pub use self::pid_file::{Occupant, Occupied, PID_FILE, TakeError, is_held_by, occupant};
pub use self::run::RunDirectory;
