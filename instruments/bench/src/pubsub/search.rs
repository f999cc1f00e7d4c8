//! The highest rate that still holds: doubled until it fails, then bisected.

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bounds<T> {
    /// The highest rate that held.
    pub(super) held: Option<(f64, T)>,
    /// The lowest that failed, and the reason.
    pub(super) failed: Option<(f64, String)>,
}

/// The search ends when both bounds are this close, which is closer than two runs of one rate.
const PRECISION: f64 = 1.04;

/// No search needs more.
const PROBES_MAX: usize = 24;

/// Searches from `start`. `probe` returns the results at a rate, or the reason why it was too high; `None` ends the
/// search.
pub(super) fn search<T>(
    start: f64,
    mut probe: impl FnMut(f64) -> Option<Result<T, String>>,
) -> Bounds<T> {
    let mut bounds = Bounds {
        held: None,
        failed: None,
    };
    let mut rate = start;
    for _ in 0..PROBES_MAX {
        let outcome = match probe(rate) {
            // A hiccup of the machine is not the router's limit: a rate has to fail twice.
            Some(Err(why)) => probe(rate).unwrap_or(Err(why)),
            Some(held) => held,
            None => break,
        };
        match outcome {
            Ok(found) => bounds.held = Some((rate, found)),
            Err(why) => bounds.failed = Some((rate, why)),
        }
        let held = bounds.held.as_ref().map(|(rate, _)| *rate);
        let failed = bounds.failed.as_ref().map(|(rate, _)| *rate);
        rate = match (held, failed) {
            (Some(held), Some(failed)) if failed / held <= PRECISION => break,
            (Some(held), Some(failed)) => (held * failed).sqrt(),
            (Some(held), None) => held * 2.0,
            (None, Some(failed)) => failed / 2.0,
            (None, None) => break,
        };
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_found_from_either_side() {
        #[track_caller]
        fn check(start: f64, limit: f64, probes_max: usize) {
            let mut probes = 0;
            let bounds = search(start, |rate| {
                probes += 1;
                Some(match rate <= limit {
                    true => Ok(()),
                    false => Err("too fast".to_owned()),
                })
            });
            let (held, failed) = (bounds.held.unwrap().0, bounds.failed.unwrap().0);
            assert!(held <= limit && failed > limit);
            assert!(failed / held <= PRECISION);
            assert!(probes <= probes_max, "{probes}");
        }
        check(100.0, 730.0, 17);
        check(100.0, 7_300.0, 20);
        check(10_000.0, 730.0, 20);
        check(700.0, 730.0, 17);
    }

    #[test]
    fn one_hiccup_is_not_a_limit() {
        let mut probes = 0;
        let bounds = search(100.0, |rate| {
            probes += 1;
            Some(match probes == 1 || rate > 730.0 {
                true => Err("no".to_owned()),
                false => Ok(()),
            })
        });
        assert!(bounds.held.unwrap().0 > 700.0);
    }

    #[test]
    fn without_a_limit_or_a_start_it_ends() {
        let endless = search(1.0, |_| Some(Ok(())));
        assert!(endless.failed.is_none() && endless.held.is_some());
        let hopeless = search::<()>(1.0, |_| Some(Err("no".to_owned())));
        assert!(hopeless.held.is_none());
        let mut left = vec!["gone".to_owned()];
        let broken = search::<()>(1.0, |_| left.pop().map(Err));
        assert_eq!(broken.failed, Some((1.0, "gone".to_owned())));
        let interrupted = search::<()>(1.0, |_| None);
        assert_eq!((interrupted.held, interrupted.failed), (None, None));
    }
}
