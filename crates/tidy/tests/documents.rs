//! Documents lead somewhere: every relative link of every page names a file that is there, and every point of
//! STYLE.md that a source file cites is one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crosstie_tidy::{members, root, sources};

#[test]
fn links_lead_to_files() {
    let mut links = 0;
    let folders = [
        ".",
        "docs",
        "docs/configuration",
        "docs/laboratory",
        "docs/web",
        "examples/rpc_roundtrip",
        "examples/rpc_roundtrip_native",
        "fuzz",
        "python",
        "conformance",
    ];
    for folder in folders {
        for entry in fs::read_dir(root().join(folder)).expect("a readable folder") {
            let path = entry.expect("a readable folder").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                links += check(&path);
            }
        }
    }
    assert!(links > 0, "no link was found at all");
}

/// Checks one page; returns how many links it has.
fn check(page: &Path) -> usize {
    let text = fs::read_to_string(page).expect("a page is UTF-8");
    let targets = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let relative = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    let mut links = 0;
    for target in relative {
        let file = target.split('#').next().unwrap_or(target);
        let folder = page.parent().expect("a page is in a folder");
        assert!(
            folder.join(file).exists(),
            "{}: {target} is not there",
            page.display()
        );
        links += 1;
    }
    links
}

#[test]
fn cited_points_of_the_style_exist() {
    let style = fs::read_to_string(root().join("STYLE.md")).expect("STYLE.md");
    let points: BTreeSet<u32> = style
        .lines()
        .filter_map(|line| line.split_once(". ")?.0.parse().ok())
        .collect();
    let mut cited = 0;
    for source in members().iter().flat_map(|member| sources(&member.folder)) {
        for citation in citations(&source.text) {
            assert!(
                points.contains(&citation),
                "{}: STYLE.md has no point {citation}",
                source.path
            );
            cited += 1;
        }
    }
    assert!(cited > 0, "no point is cited at all");
}

/// The numbers that follow "point" or "points" in lines that name the page.
fn citations(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for line in text.lines() {
        let after = line
            .split_once("STYLE.md")
            .and_then(|(_, rest)| rest.split_once("point"));
        let Some((_, list)) = after else {
            continue;
        };
        let numbers = list.split(|c: char| !c.is_ascii_digit());
        found.extend(numbers.filter_map(|number| number.parse::<u32>().ok()));
    }
    found
}

#[test]
fn citations_are_found() {
    assert_eq!(citations("//! STYLE.md, points 8 and 18."), [8, 18]);
    assert!(citations("//! STYLE.md has ten points.").is_empty());
}
