//! A node's directory: where it is, the key that is kept in it, and who runs in it.
//!
//! Use: [`NodeDirectory::find`] chooses, or says that there is none; [`Occupied::take`] makes sure that
//! one node runs in it and [`Occupied::write`] tells others about it; [`NodeKey::load_or_make`] gives
//! the node's identity; [`RunDirectory::make`] gives a private place for sockets. [`occupant`] is for
//! everybody else: does a node run there?

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
