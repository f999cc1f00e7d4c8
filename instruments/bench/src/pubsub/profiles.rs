//! The 27 load profiles of the source document, with its figures for each.
//!
//! Its headings give a dispatch rate, which should be clients × batch × rate. Two do not; both figures are kept.

/// The machine of the document's figures.
pub(super) const HARDWARE: &str = "Raspberry Pi 1, one 700 MHz ARM11 core, PyPy";

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Profile {
    /// The document's number of the result, from 1.
    pub result: usize,
    /// Dispatched events per second in the heading.
    pub heading_events_per_s: f64,
    pub clients: usize,
    pub batch: u64,
    pub rate_hz: f64,
    pub payload_bytes: usize,
    /// The mean latency, if the document gives one.
    pub latency_ms: Option<f64>,
}

impl Profile {
    pub(super) fn of(result: usize) -> Option<Self> {
        PROFILES.iter().copied().find(|one| one.result == result)
    }

    /// The rate of the load itself.
    pub(super) fn events_per_s(&self) -> f64 {
        self.clients as f64 * self.batch as f64 * self.rate_hz
    }

    /// Whether heading and load agree.
    pub(super) fn adds_up(&self) -> bool {
        (self.events_per_s() - self.heading_events_per_s).abs() < 1e-6
    }
}

/// All of them.
pub(super) const PROFILES: [Profile; 27] = [
    profile(1, 1000.0, 20, 1, 50.0, 10, None),
    profile(2, 5000.0, 50, 10, 10.0, 64, None),
    profile(3, 5000.0, 50, 2, 50.0, 64, None),
    profile(4, 2500.0, 50, 1, 50.0, 64, None),
    profile(5, 2500.0, 50, 1, 50.0, 512, None),
    profile(6, 2500.0, 50, 1, 50.0, 1024, None),
    profile(7, 2500.0, 50, 1, 50.0, 1400, Some(200.0)),
    profile(8, 6000.0, 50, 6, 20.0, 0, None),
    profile(9, 6000.0, 50, 6, 20.0, 0, None),
    profile(10, 6000.0, 50, 6, 20.0, 32, Some(400.0)),
    profile(11, 4000.0, 500, 8, 1.0, 32, None),
    profile(12, 4000.0, 500, 1, 8.0, 32, None),
    profile(13, 2000.0, 500, 1, 4.0, 32, None),
    profile(14, 2000.0, 200, 1, 10.0, 32, None),
    profile(15, 2000.0, 200, 1, 10.0, 32, None),
    profile(16, 2500.0, 500, 1, 5.0, 32, None),
    profile(17, 4000.0, 200, 1, 20.0, 32, None),
    profile(18, 4000.0, 200, 4, 5.0, 32, None),
    profile(19, 1000.0, 10, 1, 100.0, 32, None),
    profile(20, 2000.0, 2000, 1, 1.0, 32, None),
    profile(21, 2000.0, 10, 1, 200.0, 32, None),
    profile(22, 1000.0, 5, 1, 200.0, 32, Some(0.7)),
    profile(23, 4000.0, 10, 1, 0.2, 32, None),
    profile(24, 1000.0, 1000, 1, 1.0, 32, Some(25.0)),
    profile(25, 1000.0, 6000, 1, 0.2, 32, Some(850.0)),
    profile(26, 4500.0, 50, 90, 1.0, 32, None),
    profile(27, 4000.0, 500, 8, 1.0, 32, None),
];

const fn profile(
    result: usize,
    heading_events_per_s: f64,
    clients: usize,
    batch: u64,
    rate_hz: f64,
    payload_bytes: usize,
    latency_ms: Option<f64>,
) -> Profile {
    Profile {
        result,
        heading_events_per_s,
        clients,
        batch,
        rate_hz,
        payload_bytes,
        latency_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_headings_do_not_add_up() {
        let wrong: Vec<(usize, f64)> = PROFILES
            .iter()
            .filter(|profile| !profile.adds_up())
            .map(|profile| (profile.result, profile.events_per_s()))
            .collect();
        assert_eq!(wrong, [(23, 2.0), (25, 1200.0)]);
    }

    #[test]
    fn results_are_numbered_in_order() {
        let numbers: Vec<usize> = PROFILES.iter().map(|profile| profile.result).collect();
        assert_eq!(numbers, (1..=27).collect::<Vec<_>>());
        let with_latency = PROFILES.iter().filter(|one| one.latency_ms.is_some());
        let with_latency: Vec<usize> = with_latency.map(|one| one.result).collect();
        assert_eq!(with_latency, [7, 10, 22, 24, 25]);
        assert_eq!(Profile::of(28), None);
    }
}
