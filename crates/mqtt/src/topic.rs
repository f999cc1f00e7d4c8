//! Topic names and topic filters (section 4.7): validity, levels, shared subscriptions, matching.

use std::{fmt, str};

/// The longest topic name or filter, in octets (section 1.5.4).
pub const TOPIC_BYTES_MAX: usize = 65_535;

/// The first level of the filter of a shared subscription (section 4.8.2).
const SHARE: &str = "$share/";

/// A fault in a topic name or a topic filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicError {
    Empty,
    TooLong {
        bytes: usize,
    },
    /// U+0000, which no text may contain.
    Null,
    /// `+` or `#` in a topic name.
    Wildcard,
    /// `#` that is not the whole of the last level.
    MultiLevel,
    /// `+` that is not the whole of its level.
    SingleLevel,
    /// `$share/` without a name, or with a wildcard in it.
    ShareName,
    /// `$share/name` without a filter.
    ShareFilter,
}

/// The parts of a shared subscription's filter, `$share/name/filter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share<'a> {
    pub name: &'a str,
    pub filter: &'a str,
}

/// Checks a topic name: not empty, at most 65,535 octets, neither U+0000 nor a wildcard.
pub fn check_name(name: &str) -> Result<(), TopicError> {
    check_text(name)?;
    match has_wildcard(name) {
        true => Err(TopicError::Wildcard),
        false => Ok(()),
    }
}

/// Checks a topic filter: `#` is the whole of the last level, and `+` of any level. The filter of a shared
/// subscription needs [`split_share`] besides.
pub fn check_filter(filter: &str) -> Result<(), TopicError> {
    check_text(filter)?;
    if !has_wildcard(filter) {
        return Ok(());
    }
    let mut levels = levels(filter);
    while let Some(level) = levels.next() {
        if level.contains('#') && (level != "#" || levels.clone().next().is_some()) {
            return Err(TopicError::MultiLevel);
        }
        if level.contains('+') && level != "+" {
            return Err(TopicError::SingleLevel);
        }
    }
    Ok(())
}

/// The levels of a name or a filter. There is one at least, and any of them may be empty.
pub fn levels(topic: &str) -> str::Split<'_, char> {
    topic.split('/')
}

/// Whether `+` or `#` is in it.
pub fn has_wildcard(topic: &str) -> bool {
    topic.bytes().any(|octet| octet == b'+' || octet == b'#')
}

/// Splits the filter of a shared subscription; any other filter gives None.
pub fn split_share(filter: &str) -> Result<Option<Share<'_>>, TopicError> {
    let Some(rest) = filter.strip_prefix(SHARE) else {
        // Without a slash behind it, it lacks both.
        return match filter == &SHARE[..SHARE.len() - 1] {
            true => Err(TopicError::ShareName),
            false => Ok(None),
        };
    };
    let (name, filter) = rest.split_once('/').unwrap_or((rest, ""));
    if name.is_empty() || has_wildcard(name) {
        return Err(TopicError::ShareName);
    }
    if filter.is_empty() {
        return Err(TopicError::ShareFilter);
    }
    Ok(Some(Share { name, filter }))
}

/// Whether a topic name matches a filter, both valid. A wildcard in the first level does not match a name that begins
/// with `$` (section 4.7.2).
pub fn matches(filter: &str, name: &str) -> bool {
    if name.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut names = levels(name);
    for level in levels(filter) {
        // Matches the parent level, too (section 4.7.1.2).
        if level == "#" {
            return true;
        }
        match names.next() {
            Some(name) if level == "+" || level == name => {}
            _ => return false,
        }
    }
    names.next().is_none()
}

/// Whether U+0000, `+` or `#` is in it: eight octets at a time, for each PUBLISH has a name.
#[inline]
pub(crate) fn has_special(bytes: &[u8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    // The top bit of a zero octet, and of no octet if there is none (Hacker's Delight, 6-1).
    let zeros = |octets: u64| octets.wrapping_sub(ONES) & !octets & TOPS;
    let found = |octets: &[u8; 8]| {
        let octets = u64::from_ne_bytes(*octets);
        let plus = octets ^ (ONES * b'+' as u64);
        let hash = octets ^ (ONES * b'#' as u64);
        zeros(octets) | zeros(plus) | zeros(hash)
    };
    let Some(last) = bytes.last_chunk() else {
        return bytes.iter().any(|octet| matches!(octet, 0 | b'+' | b'#'));
    };
    // The last eight overlap those before.
    let (chunks, _) = bytes.as_chunks();
    chunks
        .iter()
        .fold(found(last), |all, octets| all | found(octets))
        != 0
}

fn check_text(text: &str) -> Result<(), TopicError> {
    match text.len() {
        0 => Err(TopicError::Empty),
        bytes if bytes > TOPIC_BYTES_MAX => Err(TopicError::TooLong { bytes }),
        _ if text.as_bytes().contains(&0) => Err(TopicError::Null),
        _ => Ok(()),
    }
}

impl fmt::Display for TopicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty, expected one character at least"),
            Self::TooLong { bytes } => {
                write!(f, "has {bytes} octets, expected {TOPIC_BYTES_MAX} at most")
            }
            Self::Null => f.write_str("contains U+0000"),
            Self::Wildcard => f.write_str("contains a wildcard, expected neither + nor #"),
            Self::MultiLevel => f.write_str("contains a # that is not the whole of the last level"),
            Self::SingleLevel => f.write_str("contains a + that is not the whole of its level"),
            Self::ShareName => {
                f.write_str("has no valid share name, expected $share/name/filter without wildcards in the name")
            }
            Self::ShareFilter => {
                f.write_str("has no filter behind its share name, expected $share/name/filter")
            }
        }
    }
}

impl std::error::Error for TopicError {}
