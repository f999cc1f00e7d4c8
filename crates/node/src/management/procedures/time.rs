//! Times in answers.

use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};

/// A time in text form.
pub(super) fn date(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Seconds since that time.
pub(super) fn seconds_since(time: SystemTime) -> f64 {
    time.elapsed().map_or(0.0, |elapsed| elapsed.as_secs_f64())
}
