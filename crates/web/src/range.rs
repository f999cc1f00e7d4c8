//! The part of a file that a request asks for (RFC 9110 section 14).

/// The part to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Everything: the range is invalid, or has several parts, which servers need not support.
    All,
    Part {
        first: u64,
        /// At least one.
        length: u64,
    },
    /// The range is outside the file.
    Unsatisfiable,
}

/// Parses `Range` for content of that length.
pub fn parse(text: &str, length: u64) -> Range {
    let Some((unit, range)) = text.split_once('=') else {
        return Range::All;
    };
    let Some((first, last)) = range.trim().split_once('-') else {
        return Range::All;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Range::All;
    }
    match (number(first), number(last)) {
        (Some(Some(first)), Some(last)) => {
            let last = last.unwrap_or(u64::MAX);
            if last < first {
                return Range::All;
            }
            if first >= length {
                return Range::Unsatisfiable;
            }
            Range::Part {
                first,
                length: last.min(length - 1) - first + 1,
            }
        }
        (Some(None), Some(Some(suffix))) => match suffix.min(length) {
            0 => Range::Unsatisfiable,
            suffix => Range::Part {
                first: length - suffix,
                length: suffix,
            },
        },
        _ => Range::All,
    }
}

/// A number, or empty; `None` if neither. A number that is too large becomes the maximum.
fn number(text: &str) -> Option<Option<u64>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(None);
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(Some(text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_ten_bytes() {
        let part = |first, length| Range::Part { first, length };
        for (text, expected) in [
            ("bytes=0-3", part(0, 4)),
            ("bytes=3-", part(3, 7)),
            ("bytes=-3", part(7, 3)),
            ("bytes=-30", part(0, 10)),
            ("bytes=9-99999999999999999999999", part(9, 1)),
            ("Bytes = 0-0", part(0, 1)),
            ("bytes=10-", Range::Unsatisfiable),
            ("bytes=99999999999999999999999-", Range::Unsatisfiable),
            ("bytes=-0", Range::Unsatisfiable),
            ("bytes=3-2", Range::All),
            ("bytes=0-1,3-4", Range::All),
            ("bytes=a-b", Range::All),
            ("bytes=+1-2", Range::All),
            ("bytes=-", Range::All),
            ("bytes=", Range::All),
            ("lines=0-3", Range::All),
            ("", Range::All),
        ] {
            assert_eq!(parse(text, 10), expected, "{text}");
        }
        assert_eq!(parse("bytes=0-", 0), Range::Unsatisfiable);
        assert_eq!(parse("bytes=-1", 0), Range::Unsatisfiable);
    }
}
