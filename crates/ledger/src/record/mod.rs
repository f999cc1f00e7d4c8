//! The records about a log itself: its release by an owner, its recovery by an operator.

mod recovery;
mod release;

pub use recovery::Recovery;
pub(crate) use recovery::{Phase, REPLACED_MAX};
pub use release::Release;
