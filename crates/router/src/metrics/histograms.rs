//! Histograms of times and sizes. Label values follow from the configuration, so that the number of series is bounded
//! here: those with the most values have series of their own, and the others share one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crosstie_broker::{SIZES, Sizes, VhostTimes};
use crosstie_collections::Histogram;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::histograms::{self, Labels, Series, Unit};
use crate::registry::Registry as Router;

/// Maximum number of series of a histogram, without those of the others.
const SERIES_MAX: usize = 100;

/// Number of series from which on those of stopped realms and vhosts are forgotten.
const GIVEN_MAX: usize = 10_000;

/// The value of a label of series that share one. No realm has such a name.
const OTHER: &str = "#other";

/// The classes of a histogram that are shown: the others are in the next one.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// The unit in seconds or bytes.
    one: f64,
    /// The upper bound of a class belongs to it.
    is_whole: bool,
    first: usize,
    last: usize,
    step: usize,
}

/// From 16 µs to 67 s: the time of a thread is read once for an input.
const MICROSECONDS: Scale = Scale {
    one: 1e-6,
    is_whole: false,
    first: 4,
    last: 26,
    step: 1,
};

/// From 1 ms to 75 h.
const MILLISECONDS: Scale = Scale {
    one: 1e-3,
    is_whole: false,
    first: 0,
    last: 28,
    step: 1,
};

/// From 63 bytes to 64 MiB.
const BYTES: Scale = Scale {
    one: 1.0,
    is_whole: true,
    first: 6,
    last: 26,
    step: 2,
};

impl Scale {
    /// The scale of a unit, and the end of the names of metrics in it.
    fn of(unit: Unit) -> (Self, &'static str) {
        match unit {
            Unit::Microseconds => (MICROSECONDS, "seconds"),
            Unit::Milliseconds => (MILLISECONDS, "seconds"),
            Unit::Bytes => (BYTES, "bytes"),
        }
    }

    /// The upper bounds of the shown classes, each with the values since the one before.
    fn buckets(self, values: &Histogram) -> Vec<(f64, u64)> {
        let mut counts = values.classes().iter();
        let mut buckets = Vec::new();
        let mut before = 0;
        for class in (self.first..=self.last).step_by(self.step) {
            let count = counts.by_ref().take(class + 1 - before).sum();
            before = class + 1;
            let beyond = (1_u64 << class) as f64;
            let bound = if self.is_whole { beyond - 1.0 } else { beyond };
            // As the nearest number with few digits.
            let seconds = (bound * self.one * 1e6).round() / 1e6;
            buckets.push((seconds, count));
        }
        buckets.push((f64::INFINITY, counts.sum()));
        buckets
    }
}

/// Sizes of publications in RabbitMQ's classes, and the number of publications.
#[derive(Clone, Copy, Debug, Default)]
struct Published(Sizes, u64);

/// Values that are shown as a histogram.
trait Values: Copy + Default {
    fn count(&self) -> u64;
    fn add(&mut self, other: &Self);
    /// The sum, and the upper bounds of the shown classes with the values since the one before.
    fn shown(&self, scale: Scale) -> (f64, Vec<(f64, u64)>);
}

impl Values for Histogram {
    fn count(&self) -> u64 {
        self.count()
    }

    fn add(&mut self, other: &Self) {
        self.add(other);
    }

    fn shown(&self, scale: Scale) -> (f64, Vec<(f64, u64)>) {
        (self.sum() as f64 * scale.one, scale.buckets(self))
    }
}

impl Values for Published {
    fn count(&self) -> u64 {
        self.1
    }

    fn add(&mut self, other: &Self) {
        self.0.add(&other.0);
        self.1 += other.1;
    }

    fn shown(&self, _: Scale) -> (f64, Vec<(f64, u64)>) {
        let Self(sizes, count) = *self;
        let mut before = 0;
        let bounds = SIZES.iter().map(|bound| *bound as f64);
        let bounds = bounds.chain([f64::INFINITY]);
        let cumulated = sizes.cumulated(count).into_iter().chain([count]);
        let buckets = bounds.zip(cumulated).map(|(bound, up_to)| {
            let own = up_to.saturating_sub(before);
            before = up_to;
            (bound, own)
        });
        (sizes.bytes as f64, buckets.collect())
    }
}

/// A histogram by labels.
#[derive(Debug)]
struct Family {
    name: String,
    help: &'static str,
    series: Vec<(Labels, Shown)>,
}

/// The sum of a series, and its buckets.
type Shown = (f64, Vec<(f64, u64)>);

impl Family {
    fn register<V: Values>(
        registry: &mut Registry,
        (name, help): (String, &'static str),
        scale: Scale,
        series: Vec<(Labels, V)>,
    ) {
        if series.is_empty() {
            return;
        }
        let series = {
            let mut given = GIVEN.lock();
            given
                .entry(name.clone())
                .or_default()
                .bounded(series, SERIES_MAX)
        };
        let series = series.into_iter();
        let series = series.map(|(labels, values)| (labels, values.shown(scale)));
        registry.register_collector(Box::new(Self {
            name,
            help,
            series: series.collect(),
        }));
    }
}

impl Collector for Family {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut metric =
            encoder.encode_descriptor(&self.name, self.help, None, MetricType::Histogram)?;
        for (labels, (sum, buckets)) in &self.series {
            let count = buckets.iter().map(|(_, count)| count).sum();
            match labels.is_empty() {
                true => metric.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)?,
                false => metric
                    .encode_family(labels)?
                    .encode_histogram::<NoLabelSet>(*sum, count, buckets, None)?,
            }
        }
        Ok(())
    }
}

pub(super) fn register<'v>(
    registry: &mut Registry,
    routers: &[Arc<Router>],
    vhosts: impl Iterator<Item = (&'v str, VhostTimes)>,
) {
    let mut sizes = Vec::new();
    let vhosts = vhosts.inspect(|(worker, vhost)| {
        let labels = histograms::labels(worker, &[("vhost", &vhost.name)]);
        sizes.push((labels, Published(vhost.sizes, vhost.published)));
    });
    let all: Vec<Series> = histograms::all(routers, vhosts).collect();
    for series in all {
        let (scale, unit) = Scale::of(series.unit);
        let name = format!("{}_{unit}", series.name);
        Family::register(registry, (name, series.help), scale, series.by_labels);
    }
    let name = "amqp_message_size_bytes".to_owned();
    let help = "Sizes of the bodies of published messages";
    Family::register(registry, (name, help), BYTES, sizes);
}

/// The series that were given one of their own, by histogram. A series that shares one never gets its own later: the
/// shared one would fall, and a rate takes that for a restart.
static GIVEN: Mutex<BTreeMap<String, Given>> = Mutex::new(BTreeMap::new());

/// Which series of a histogram have one of their own, and which share one.
#[derive(Debug, Default)]
struct Given(BTreeMap<Labels, bool>);

impl Given {
    /// The series of their own, and one for each worker with the sum of the others. Among new ones those with the most
    /// values come first.
    fn bounded<V: Values>(
        &mut self,
        mut series: Vec<(Labels, V)>,
        series_max: usize,
    ) -> Vec<(Labels, V)> {
        // A page may show some workers alone: the series of the others keep what they were given.
        if self.0.len() > GIVEN_MAX {
            let there: BTreeSet<&Labels> = series.iter().map(|(labels, _)| labels).collect();
            self.0.retain(|labels, _| there.contains(labels));
        }
        series.sort_by_key(|(_, values)| Reverse(values.count()));
        let mut own = self.0.values().filter(|is_own| **is_own).count();
        let mut shown: BTreeMap<Labels, V> = BTreeMap::new();
        for (mut labels, values) in series {
            let is_own = *self.0.entry(labels.clone()).or_insert_with(|| {
                let has_room = own < series_max;
                own += usize::from(has_room);
                has_room
            });
            if !is_own {
                for (name, value) in &mut labels {
                    if *name != "worker" {
                        OTHER.clone_into(value);
                    }
                }
            }
            shown.entry(labels).or_default().add(&values);
        }
        shown.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|value| histogram.note(*value));
        histogram
    }

    #[test]
    fn a_bucket_has_the_values_up_to_its_bound() {
        let times = MICROSECONDS.buckets(&values(&[0, 15, 16, 31, 32, 1 << 26, u64::MAX]));
        assert_eq!(times[0], (0.000016, 2));
        assert_eq!(times[1], (0.000032, 2));
        assert_eq!(times[2], (0.000064, 1));
        assert_eq!(times[22], (67.108864, 0));
        assert_eq!(times[23], (f64::INFINITY, 2));
        let waits = MILLISECONDS.buckets(&values(&[0, 1, 1, 2]));
        assert_eq!(waits[..3], [(0.001, 1), (0.002, 2), (0.004, 1)]);
        let sizes = BYTES.buckets(&values(&[0, 63, 64, 255, 256, 1 << 26]));
        assert_eq!(sizes[..3], [(63.0, 2), (255.0, 2), (1023.0, 1)]);
        assert_eq!(sizes.last(), Some(&(f64::INFINITY, 1)));
    }

    #[test]
    fn the_series_with_few_values_share_one_for_good() {
        let labels = |realm: &str| vec![("worker", "w".to_owned()), ("realm", realm.to_owned())];
        let series = |a: &[u64], b: &[u64], c: &[u64]| {
            [("a", a), ("b", b), ("c", c)].map(|(realm, own)| (labels(realm), values(own)))
        };
        let mut given = Given::default();
        let shown = given.bounded(series(&[1], &[1, 2, 3], &[7]).into(), 1);
        let expected = vec![
            (labels(OTHER), values(&[1, 7])),
            (labels("b"), values(&[1, 2, 3])),
        ];
        assert_eq!(shown, expected);
        // Another one has more values now.
        let shown = given.bounded(series(&[1, 1, 1, 1, 1], &[1, 2, 3], &[7]).into(), 1);
        assert_eq!(shown[1], (labels("b"), values(&[1, 2, 3])));
        assert_eq!(shown[0].1.count(), 6);
        // All have their own if there is room from the start; one of that name is part of the shared one.
        let named = vec![
            (labels(OTHER), values(&[1])),
            (labels("b"), values(&[2, 2])),
        ];
        let shown = Given::default().bounded(named, 3);
        assert_eq!(shown.len(), 2);
    }

    #[test]
    fn the_text_is_that_of_a_histogram() {
        let mut registry = Registry::with_prefix("x");
        let series = vec![(vec![("a", "b\"".to_owned())], values(&[3, 500]))];
        Family::register(
            &mut registry,
            ("took_seconds".to_owned(), "Time"),
            MILLISECONDS,
            series,
        );
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("a string");
        assert!(
            text.starts_with("# HELP x_took_seconds Time\n# TYPE x_took_seconds histogram\n"),
            "{text}"
        );
        assert!(
            text.contains("x_took_seconds_sum{a=\"b\\\"\"} 0.503\n"),
            "{text}"
        );
        assert!(
            text.contains("x_took_seconds_bucket{le=\"0.004\",a=\"b\\\"\"} 1\n"),
            "{text}"
        );
        assert!(
            text.contains("x_took_seconds_bucket{le=\"+Inf\",a=\"b\\\"\"} 2\n"),
            "{text}"
        );
    }
}
