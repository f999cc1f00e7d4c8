//! The node directory: which it is, whose it is, and the key in it.
