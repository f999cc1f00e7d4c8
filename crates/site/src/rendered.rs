//! Cached pages, for clients that repeat requests too soon.
//!
//! Rendering reads every realm and vhost under its lock. Occasional requests get a current page. Frequent requests, or
//! requests for very large pages, get one that is at most a second old, with its age in the header `Age` (RFC 9111,
//! section 5.1).

use std::time::{Duration, Instant};

use bytes::Bytes;

/// Maximum age of a cached page.
const KEPT_MAX: Duration = Duration::from_secs(1);
/// Rendering that takes this much processor time is not repeated within that age.
const COSTLY: Duration = Duration::from_millis(20);
/// Rendering may use half of a core permanently, and this much at once.
const SHARE: u32 = 2;
const BURST: Duration = Duration::from_millis(500);

/// The cached pages of one listener.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    pages: [Option<Kept>; Rendering::COUNT],
    /// Processor time spent, minus the share earned since.
    spent: Duration,
    spent_at: Option<Instant>,
}

/// A page's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rendering {
    OpenMetrics,
    TextMetrics,
    Status,
}

impl Rendering {
    const COUNT: usize = 3;
}

#[derive(Debug)]
struct Kept {
    at: Instant,
    took: Duration,
    text: Bytes,
}

/// A page as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub text: Bytes,
    /// The age of a cached page; `None` if it was rendered for this request.
    pub age: Option<Duration>,
}

impl Rendered {
    /// The cached page to send instead of rendering, if any.
    pub(crate) fn kept(&mut self, what: Rendering, now: Instant) -> Option<Shown> {
        self.earn(now);
        let is_in_debt = self.spent > BURST;
        let kept = self.pages[what as usize].as_ref()?;
        let age = now.saturating_duration_since(kept.at);
        (age < KEPT_MAX && (is_in_debt || kept.took >= COSTLY)).then(|| Shown {
            text: kept.text.clone(),
            age: Some(age),
        })
    }

    /// Caches a page whose rendering took that much processor time.
    pub(crate) fn keep(&mut self, what: Rendering, now: Instant, took: Duration, text: Bytes) {
        self.earn(now);
        self.spent = self.spent.saturating_add(took);
        self.pages[what as usize] = Some(Kept {
            at: now,
            took,
            text,
        });
    }

    fn earn(&mut self, now: Instant) {
        if let Some(before) = self.spent_at.replace(now) {
            let earned = now.saturating_duration_since(before) / SHARE;
            self.spent = self.spent.saturating_sub(earned);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests a page at these times in milliseconds. Returns the times at which it was rendered, which takes `took`.
    fn rendered_at(times: impl IntoIterator<Item = u64>, took: Duration) -> Vec<u64> {
        let (mut pages, start) = (Rendered::default(), Instant::now());
        let is_rendered = |at: &u64| {
            let now = start + Duration::from_millis(*at);
            let kept = pages.kept(Rendering::TextMetrics, now);
            if kept.is_none() {
                pages.keep(Rendering::TextMetrics, now, took, Bytes::new());
            }
            kept.is_none()
        };
        times.into_iter().filter(is_rendered).collect()
    }

    #[test]
    fn occasional_requests_get_a_current_page() {
        let times: Vec<_> = (0..1_000).map(|n| n * 10).collect();
        assert_eq!(rendered_at(times.clone(), Duration::from_millis(4)), times);
    }

    #[test]
    fn frequent_requests_use_half_of_a_core() {
        let took = Duration::from_micros(1_500);
        let count = rendered_at(0..10_000, took).len() as u32;
        let spent = took * count;
        assert!(spent <= Duration::from_millis(5_600), "{spent:?}");
        assert!(spent >= Duration::from_millis(5_000), "{spent:?}");
    }

    #[test]
    fn a_cached_page_has_its_age() {
        let (mut pages, start) = (Rendered::default(), Instant::now());
        let (text, took) = (Bytes::from_static(b"a page"), Duration::from_millis(100));
        pages.keep(Rendering::Status, start, took, text.clone());
        let age = Some(Duration::from_millis(700));
        assert_eq!(
            pages.kept(Rendering::Status, start + Duration::from_millis(700)),
            Some(Shown { text, age })
        );
    }

    #[test]
    fn costly_pages_are_rendered_once_a_second() {
        let took = Duration::from_millis(100);
        assert_eq!(
            rendered_at((0..3_500).step_by(7), took),
            [0, 1_001, 2_002, 3_003]
        );
    }
}
