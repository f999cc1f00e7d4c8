//! What a bench says: tables for people, one JSON frame for programs.

pub mod document;
pub mod json;
pub mod table;
