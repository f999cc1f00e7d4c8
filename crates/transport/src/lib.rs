//! Sockets and the path of bytes through them: listening, reading, corking, bounded queues.
//!
//! This crate knows no messages. A [`Protocol`] is passed the bytes of one read. Whatever it
//! [appends](Connection::append) to any connection, its own or another thread's, leaves in one write per connection
//! after that input has been handled (the *cork*). The path has no hop to another task: the thread that reads a message
//! writes to its receivers.
//!
//! ```text
//! socket ─recv─▶ pump ─▶ Protocol::handle_input ─▶ Connection::append (any connection)
//! socket ◀─send─ Connection::flush ◀─ cork (each touched connection once)
//! ```

mod account;
mod allocator;
mod balance;
mod bounded;
mod budget;
mod clock;
mod connection;
mod cores;
mod cork;
mod debt;
pub mod descriptors;
mod end;
mod filtering;
mod flags;
mod flow;
mod flush;
pub mod handed;
mod image;
mod kept;
mod ledger;
mod listener;
mod mailbox;
#[cfg(all(
    target_arch = "x86_64",
    any(test, all(target_env = "musl", not(debug_assertions)))
))]
mod memory;
mod meter;
mod out;
mod overflow;
mod own_end;
mod own_items;
pub mod passed;
mod peer_end;
mod proxied;
pub mod proxy_header;
mod pump;
mod queue;
mod readiness;
mod schedstat;
mod socket;
mod soon;
mod stage;
mod stream;
mod tap;
mod tapping;
pub mod tls;
mod waiting;
mod workers;

pub use account::{Account, Debt, Kind};
pub use budget::Budget;
pub use clock::{next_second, now_s};
pub use connection::Connection;
pub use cores::Cores;
pub use cork::fan_outs;
pub use cork::{
    appended_bytes, is_line_long, is_much_appended, relieve, thread_number, uncork, uncork_all,
    uncork_few,
};
pub use end::Owner;
pub use flow::Flow;
pub use image::unmap_program;
pub use kept::Kept;
pub use listener::{Endpoint, Listener, TcpOptions, bind_group};
pub use mailbox::{Portion, Taken, Taker};
pub use meter::{Meter, sent_bytes};
pub use out::{ConnectionLimits, Refused};
pub use overflow::{Bounds, Overflow, Queued};
pub use proxied::{Unproxied, receive_proxy_header};
pub use pump::{Ended, Outcome, Place, Protocol, Pump, Reading, Unread, pump, pump_in};
pub use socket::{PeerAddress, Socket};
pub use soon::uncork_soon;
pub use stage::{Filter, Filtered, Stage, StageError};
pub use stream::ConnectionStream;
pub use tap::Tap;
pub use waiting::{Spins, Waiting, expect_none};
pub use workers::{WorkerOptions, Workers};
