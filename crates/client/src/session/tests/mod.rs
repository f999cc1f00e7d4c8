//! Sessions as scripts; see [`actor`] for their syntax.

mod actor;
mod lifetime;
mod listeners;
mod requests;
