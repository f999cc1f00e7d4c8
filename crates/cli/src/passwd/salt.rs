//! Random salts.

use anyhow::Context as _;

/// A salt of so many bytes.
pub(crate) fn salt<const BYTES: usize>() -> anyhow::Result<[u8; BYTES]> {
    let mut salt = [0; BYTES];
    getrandom::fill(&mut salt).context("the system gives no random bytes")?;
    Ok(salt)
}
