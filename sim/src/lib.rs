//! The router simulated from a seed: many sessions do random things to one realm, and a naive
//! model says what each of them must be sent.
