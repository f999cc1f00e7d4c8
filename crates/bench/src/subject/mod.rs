//! What is measured: its name, its address, and a router or server that a bench starts itself.

pub mod case;
pub mod cases;
pub mod router;
pub mod routers;
pub mod server;
pub mod target;

pub use crosstie_link::{Endpoint, ParseError};
