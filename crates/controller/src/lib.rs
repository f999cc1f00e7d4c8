//! A node, as an operator sees it: a directory with a key and a configuration, workers that are
//! started, watched and stopped together, and a management realm to ask about them.

pub mod directory;
pub mod process;
