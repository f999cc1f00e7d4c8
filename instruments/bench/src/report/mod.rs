//! The output of a bench: tables for people, one JSON frame for programs.

pub(crate) mod document;
pub(crate) mod json;
pub(crate) mod table;
