//! An axis: from values to pixels by plotters' coordinates, with ticks at round values.

use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{IntoLogRange, LogCoord};

use crate::metric::{self, Unit};

/// The distribution of values along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Logarithmic,
}

/// One axis between two pixel positions.
pub(crate) struct Axis {
    coordinates: Coordinates,
    pixels: (f64, f64),
    /// The unit of the coordinates.
    grain: f64,
    pub(crate) ticks: Vec<f64>,
}

enum Coordinates {
    Linear(RangedCoordf64),
    Logarithmic(LogCoord<f64>),
}

/// Minimum distance of two ticks in pixels: labels are wider than they are high.
const TICK_DISTANCE_ALONG: f64 = 56.0;
const TICK_DISTANCE_UP: f64 = 24.0;

/// plotters maps to whole numbers: a fine range, divided again, keeps the fractions of a pixel.
const FINE: f64 = 1024.0;

impl Axis {
    /// An axis with room for all values. Without any it exists all the same.
    pub(crate) fn around(values: &[f64], unit: Unit, scale: Scale, pixels: (f64, f64)) -> Self {
        // Upwards, pixels decrease.
        let distance = match pixels.1 < pixels.0 {
            true => TICK_DISTANCE_UP,
            false => TICK_DISTANCE_ALONG,
        };
        let ticks_max = ((pixels.1 - pixels.0).abs() / distance).max(2.0);
        let usable = values.iter().copied().filter(|value| match scale {
            Scale::Linear => value.is_finite(),
            Scale::Logarithmic => value.is_finite() && *value > 0.0,
        });
        let (low, high) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (low, high) = if low > high { (1.0, 1.0) } else { (low, high) };
        let grain = metric::grain(unit, high);
        let (low, high) = (low / grain, high / grain);
        let mut axis = match scale {
            Scale::Linear => {
                // From zero, because lengths are compared; with space above the longest.
                let range = low.min(0.0)..(high.max(0.0) * 1.04).max(f64::MIN_POSITIVE);
                let coordinates = RangedCoordf64::from(range);
                Self {
                    ticks: coordinates.key_points(ticks_max as usize),
                    coordinates: Coordinates::Linear(coordinates),
                    pixels,
                    grain,
                }
            }
            Scale::Logarithmic => {
                let (low, high) = (round_down(low), round_up(high.max(low * 1.2)));
                Self {
                    ticks: log_ticks(low, high, ticks_max),
                    coordinates: Coordinates::Logarithmic((low..high).log_scale().into()),
                    pixels,
                    grain,
                }
            }
        };
        axis.ticks.iter_mut().for_each(|tick| *tick *= grain);
        axis
    }

    /// Puts ticks at these values only, if they are few and have room.
    pub(crate) fn prefer(&mut self, values: &[f64]) {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let room = values
            .windows(2)
            .all(|pair| (self.at(pair[1]) - self.at(pair[0])).abs() > TICK_DISTANCE_ALONG);
        if values.len() > 1 && room {
            self.ticks = values;
        }
    }

    /// The position of a value; values outside the axis are at its beginning.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let value = value / self.grain;
        let limits = (0, FINE as i32 * 64);
        let mapped = match &self.coordinates {
            Coordinates::Linear(coordinates) => coordinates.map(&value, limits),
            Coordinates::Logarithmic(_) if value <= 0.0 => 0,
            Coordinates::Logarithmic(coordinates) => coordinates.map(&value, limits),
        };
        let share = (f64::from(mapped) / f64::from(limits.1)).clamp(0.0, 1.0);
        self.pixels.0 + (self.pixels.1 - self.pixels.0) * share
    }
}

/// The next of 1, 2, 5 times a power of ten at or below.
fn round_down(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step <= value * 1.000_001)
        .unwrap_or(power)
}

fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= value * 0.999_999)
        .unwrap_or(10.0 * power)
}

/// 1, 2, 5 times powers of ten while there is room for their labels, powers alone otherwise.
fn log_ticks(low: f64, high: f64, ticks_max: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let ticks = |multiples: &[f64]| -> Vec<f64> {
        let powers = (first..=last).map(|power| 10f64.powi(power));
        let all = powers.flat_map(|power| multiples.iter().map(move |m| m * power));
        all.filter(|tick| (low * 0.999_999..=high * 1.000_001).contains(tick))
            .collect()
    };
    let fine = ticks(&[1.0, 2.0, 5.0]);
    if fine.len() as f64 <= ticks_max + 1.0 {
        return fine;
    }
    ticks(&[1.0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        #[track_caller]
        fn check(values: &[f64], scale: Scale, expected: &[f64]) {
            let axis = Axis::around(values, Unit::Number, scale, (0.0, 300.0));
            assert_eq!(axis.ticks.len(), expected.len(), "{:?}", axis.ticks);
            for (tick, expected) in axis.ticks.iter().zip(expected) {
                assert!((tick - expected).abs() < 1e-9, "{:?}", axis.ticks);
            }
        }
        use Scale::{Linear, Logarithmic};
        check(&[3.0, 8.7], Linear, &[0.0, 2.0, 4.0, 6.0, 8.0]);
        check(&[13.0, 90.0], Logarithmic, &[10.0, 20.0, 50.0, 100.0]);
        check(
            &[13.0, 90_000.0],
            Logarithmic,
            &[10.0, 100.0, 1e3, 1e4, 1e5],
        );
    }

    #[test]
    fn values_have_their_place() {
        #[track_caller]
        fn check(values: &[f64], scale: Scale, value: f64, expected: f64) {
            let axis = Axis::around(values, Unit::Number, scale, (100.0, 300.0));
            assert!(
                (axis.at(value) - expected).abs() < 0.01,
                "{}",
                axis.at(value)
            );
        }
        check(&[10.0], Scale::Linear, 5.2, 200.0);
        check(&[10.0, 1_000.0], Scale::Logarithmic, 100.0, 200.0);
        check(&[10.0, 1_000.0], Scale::Logarithmic, 0.0, 100.0);
        check(&[0.0, f64::NAN], Scale::Logarithmic, 1.0, 100.0);
    }
}
