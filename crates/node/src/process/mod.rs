//! Child processes: started so that none outlives its node, watched, and ended in order.
//!
//! ```text
//!  node ──spawn──▶ `crosstie exec-child` ──exec──▶ the program, leader of a group of its own
//!   │                 asks for SIGTERM should the node die; takes its cores and descriptors
//!   └──pipe──▶ `crosstie child-guard`: when the node is gone, the pipe ends;
//!                 the guard then sends SIGTERM to the remaining groups, and SIGKILL 2 s later
//! ```
//!
//! A process that leaves its group (`setsid`, daemons) becomes a child of the node when its parent ends, and is killed
//! together with the child that started it. The guard cannot do that, as it is no ancestor of it.
//!
//! The two small programs in between exist because work between fork and exec would need unsafe code in Rust, and
//! because a process that is killed with SIGKILL cannot clean up itself.
//!
//! Use: [`Children::spawn`] with a [`Command`]; the closure gets the child's output, and [`Child::wait`] returns its
//! end. Spawn from a thread that lives as long as the node: the kernel takes the end of that thread for the parent's
//! death.

mod apart;
mod children;
mod command;
mod descriptors;
mod ended;
mod exec_child;
mod guard;
mod lines;
mod orphans;
mod output;
mod program;
mod restart;
mod supervise;
mod watch;

pub(crate) use self::apart::Apart;
pub use self::children::{Child, Children};
pub use self::command::{Command, Output, Stdin, Streams};
pub use self::descriptors::raise_descriptor_limit;
pub(crate) use self::descriptors::{inherit_limit_of_children, limit_of_children};
pub use self::ended::{Ended, signal_name};
pub use self::exec_child::{EXEC_CHILD, exec_child};
pub use self::guard::{CHILD_GUARD, child_guard};
pub use self::lines::{LINE_BYTES_MAX, LINES_PER_SECOND_MAX, Level, Line};
pub use self::output::output;
pub use self::program::find_program;
pub use self::restart::Backoff;
pub use self::watch::Watch;
