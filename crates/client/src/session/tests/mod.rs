//! Sessions as scripts; see [`actor`] for how to read them.

mod actor;
mod asking;
mod lifetime;
mod listening;
