//! The client's verbs and the client library against a node of the built binary.

mod library;
mod node;
mod verbs;
