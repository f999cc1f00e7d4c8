//! Seeds of random numbers that need not be secret.

/// The seed of a realm's or vhost's random ids. Ids must be unlikely to collide, not secret, so that the time serves if
/// the system has no randomness at start.
pub fn seed() -> u64 {
    getrandom::u64().unwrap_or_else(|_| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |since| since.as_nanos() as u64)
    })
}
