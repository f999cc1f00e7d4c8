//! The rules, each in a file.

mod book;
mod circles;
mod documents;
mod files;
mod instructions;
mod layers;
mod ratchets;
mod server;
mod words;
