//! See [`crosstie_fuzz::ledger::batch`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::ledger::batch(data));
