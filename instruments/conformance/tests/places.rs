//! Checks that every place that a scenario cites exists: a page of the specification and its heading, or a page of
//! ours.

use std::collections::BTreeMap;
use std::path::Path;

use crosstie_conformance::{Feature, embedded};

/// Pages, and the anchors of each.
fn specification() -> BTreeMap<&'static str, Vec<&'static str>> {
    let lines = include_str!("places.txt").lines();
    let lines = lines.filter(|line| !line.starts_with("//"));
    let pages = lines.filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?, words.collect()))
    });
    pages.collect()
}

fn cited(feature: &Feature) -> Vec<&str> {
    let scenarios = feature.scenarios.iter();
    let sections = scenarios.filter_map(|scenario| scenario.section.as_deref());
    std::iter::once(feature.section.as_str())
        .chain(sections)
        .collect()
}

#[test]
fn sections_are_in_the_specification_or_our_own_pages() {
    let pages = specification();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for feature in embedded().unwrap() {
        for place in cited(&feature) {
            let (page, anchor) = place.split_once('#').unwrap_or((place, ""));
            let exists = match feature.is_own {
                true => root.join(page).is_file(),
                false => pages
                    .get(page)
                    .is_some_and(|anchors| anchor.is_empty() || anchors.contains(&anchor)),
            };
            assert!(exists, "{}: {place}", feature.file);
        }
    }
}
