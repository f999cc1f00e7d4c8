//! Cookies: who a browser was when it logged in last. Crossbar.io's method `cookie`.

mod jar;
mod record;

pub use jar::Cookies;
pub use record::{Record, Remembered, Stamp};
