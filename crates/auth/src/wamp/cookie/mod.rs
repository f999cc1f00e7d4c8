//! Cookies: the principal of a browser's last login. Crossbar.io's method `cookie`.

mod jar;
mod record;

pub use jar::Cookies;
pub use record::{Record, Remembered, Stamp};
