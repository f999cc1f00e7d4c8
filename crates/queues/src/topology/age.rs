//! Ages in arguments.

/// An age as RabbitMQ writes it: one number and one unit.
pub(crate) fn age_ms(text: &str) -> Option<u64> {
    const SECOND_MS: u64 = 1_000;
    const DAY_MS: u64 = 86_400 * SECOND_MS;
    let unit = text.chars().next_back()?;
    let unit_ms = match unit {
        'Y' => 365 * DAY_MS,
        'M' => 30 * DAY_MS,
        'D' => DAY_MS,
        'h' => 3_600 * SECOND_MS,
        'm' => 60 * SECOND_MS,
        's' => SECOND_MS,
        _ => return None,
    };
    let digits = &text[..text.len() - unit.len_utf8()];
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    // A larger age than there is time is as good as none.
    (count > 0).then(|| count.saturating_mul(unit_ms))
}
