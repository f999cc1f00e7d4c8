//! Conditional requests (RFC 9110 section 13).

use std::time::{Duration, UNIX_EPOCH};

/// The validators of a representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validators {
    tag: String,
    /// Seconds since 1970, without a fraction, as in headers.
    modified_s: u64,
}

/// The last second that a header's date can express (RFC 9110 section 5.6.7): the end of 9999.
const DATE_MAX_S: u64 = 253_402_300_799;

impl Validators {
    /// For a file with that modification time since 1970 and that length. File systems may have later times than
    /// headers can express.
    pub fn new(modified: Duration, length: u64) -> Self {
        Self {
            tag: format!("\"{:x}-{length:x}\"", modified.as_nanos()),
            modified_s: modified.as_secs().min(DATE_MAX_S),
        }
    }

    /// The same for a content coding, which is another representation (RFC 9110 section 8.8.3).
    pub fn encoded(&self, coding: &str) -> Self {
        let bare = self.tag.trim_matches('"');
        Self {
            tag: format!("\"{bare}-{coding}\""),
            ..self.clone()
        }
    }

    /// For `ETag`.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// For `Last-Modified`.
    pub fn modified_text(&self) -> String {
        httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(self.modified_s))
    }

    /// Whether `If-Range` matches: a tag or a date, exactly.
    pub fn are_those_of(&self, text: &str) -> bool {
        text == self.tag || date_s(text) == Some(self.modified_s)
    }

    fn is_listed(&self, tags: &str, may_be_weak: bool) -> bool {
        tags.trim() == "*"
            || tags.split(',').map(str::trim).any(|tag| {
                let strong = match may_be_weak {
                    true => tag.strip_prefix("W/").unwrap_or(tag),
                    false => tag,
                };
                strong == self.tag
            })
    }
}

/// The conditional headers of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Condition<'a> {
    pub matches: Option<&'a str>,
    pub unmodified_since: Option<&'a str>,
    pub none_matches: Option<&'a str>,
    pub modified_since: Option<&'a str>,
}

impl Condition<'_> {
    /// The status 304 or 412 if a condition fails (section 13.2.2).
    pub fn judge(&self, validators: &Validators) -> Option<u16> {
        let is_as_known = match (self.matches, self.unmodified_since) {
            (Some(tags), _) => validators.is_listed(tags, false),
            (None, Some(text)) => date_s(text).is_none_or(|date_s| validators.modified_s <= date_s),
            (None, None) => true,
        };
        if !is_as_known {
            return Some(412);
        }
        let is_new = match (self.none_matches, self.modified_since) {
            (Some(tags), _) => !validators.is_listed(tags, true),
            (None, Some(text)) => date_s(text).is_none_or(|date_s| validators.modified_s > date_s),
            (None, None) => true,
        };
        (!is_new).then_some(304)
    }
}

/// Seconds since 1970.
fn date_s(text: &str) -> Option<u64> {
    let date = httpdate::parse_http_date(text).ok()?;
    date.duration_since(UNIX_EPOCH)
        .ok()
        .map(|since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_and_their_statuses() {
        let validators = Validators::new(Duration::from_millis(1_000_500), 10);
        let tag = validators.tag().to_owned();
        let weak = format!("\"x\", W/{tag}");
        let then = validators.modified_text();
        let before = httpdate::fmt_http_date(UNIX_EPOCH);
        // If-Match, If-Unmodified-Since, If-None-Match, If-Modified-Since, and the status.
        let rows: [([&str; 4], Option<u16>); 14] = [
            (["", "", "", ""], None),
            (["", "", &tag, ""], Some(304)),
            (["", "", &weak, ""], Some(304)),
            (["", "", "*", ""], Some(304)),
            (["", "", "\"x\"", ""], None),
            (["", "", "", &then], Some(304)),
            (["", "", "", &before], None),
            (["", "", "", "soon"], None),
            (["", "", "\"x\"", &then], None),
            ([&tag, "", "", ""], None),
            ([&weak, "", "", ""], Some(412)),
            (["*", "", "", ""], None),
            (["", &then, "", ""], None),
            (["", &before, "", ""], Some(412)),
        ];
        for (headers, expected) in rows {
            let [matches, unmodified_since, none_matches, modified_since] =
                headers.map(|text| (!text.is_empty()).then_some(text));
            let condition = Condition {
                matches,
                unmodified_since,
                none_matches,
                modified_since,
            };
            assert_eq!(condition.judge(&validators), expected, "{condition:?}");
        }
        let encoded = validators.encoded("gzip");
        assert!(encoded.tag() != tag && encoded.tag().ends_with("-gzip\""));
        assert!(validators.are_those_of(&tag) && validators.are_those_of(&then));
        assert!(!validators.are_those_of(&before) && !validators.are_those_of("\"x\""));
    }

    #[test]
    fn a_time_beyond_the_range_of_headers() {
        for modified in [Duration::from_secs(DATE_MAX_S + 1), Duration::MAX] {
            let validators = Validators::new(modified, 0);
            let text = validators.modified_text();
            assert_eq!(text, "Fri, 31 Dec 9999 23:59:59 GMT");
            assert!(validators.are_those_of(&text));
        }
    }
}
