//! The files of a store: records, heads, manifest, indexes, payloads; whole segments, stores and backups.
//!
//! The bodies are beside the decoders, which are private: see [`crosstie_store::fuzzing`].

pub use crosstie_store::fuzzing::{
    backup, heads, index, manifest, payload, record, segment, store,
};

/// Examples for a body, by its number in the order of [`crosstie_store::fuzzing::seeds`].
pub fn seeds(number: usize) -> Vec<Vec<u8>> {
    crosstie_store::fuzzing::seeds()[number].clone()
}
