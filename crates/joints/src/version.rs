//! Versions of targets.

/// Whether a server with the offered version can serve a request for the other: the same major version, and at least
/// the minor version.
pub fn is_compatible(offered: &str, asked: &str) -> bool {
    let numbers = |version: &str| -> Option<(u32, u32)> {
        let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
        let minor = minor.split('.').next().unwrap_or("0");
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    match (numbers(offered), numbers(asked)) {
        (Some(offered), Some(asked)) => offered.0 == asked.0 && offered.1 >= asked.1,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_compatible;

    #[test]
    fn versions_are_compared() {
        let rows = [
            ("1.0", "1.0", true),
            ("1.3", "1.2", true),
            ("1.2", "1.3", false),
            ("2.0", "1.0", false),
            ("1", "1.0", true),
            ("1.0", "x", false),
        ];
        for (offered, asked, expected) in rows {
            assert_eq!(is_compatible(offered, asked), expected, "{offered} {asked}");
        }
    }
}
