//! The simulations. One program plays them all, several at a time: as programs of their own they are played one after the
//! other, each on one core.

mod delays;
mod fabric;
mod history;
mod ledger;
mod resumption;
mod seeds;
mod seeds_played;
mod threads;
mod vhosts;
