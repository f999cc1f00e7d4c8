//! The processes of a bench: started, placed, instructed, read, and ended in order.

pub(crate) mod descriptors;
pub(crate) mod directory;
pub(crate) mod place;
pub(crate) mod stop;
pub(crate) mod worker;
pub(crate) mod workers;

pub(crate) use place::Place;
pub(crate) use stop::Stop;
pub(crate) use worker::{
    Driver, GUARD, LOGIN_PATIENCE, LastWord, Listening, PATIENCE, SUBCOMMAND, WorkerError,
    instruction, say,
};
pub(crate) use workers::{Failed, INTERRUPTED, STOP_AFTER, Workers};
