//! Every relative link of every page leads to a file and an anchor that exist, and every point of STYLE.md that a source
//! file cites exists.

use std::collections::BTreeSet;
use std::fs;

use crosstie_tidy::pages::{Page, pages};
use crosstie_tidy::{members, root, sources};

#[test]
fn links_lead_to_files_and_anchors() {
    let mut links = 0;
    let mut broken = Vec::new();
    let folders = [
        ".",
        "examples/celery_tasks",
        "examples/oslo_service",
        "examples/page_and_backend",
        "examples/page_service_tasks",
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
                links += check(&Page::read(&path), &mut broken);
            }
        }
    }
    for page in pages(&root().join("docs")) {
        links += check(&page, &mut broken);
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(links > 0, "no link was found at all");
}

/// Adds the links of a page that lead nowhere; returns how many links it has.
fn check(page: &Page, broken: &mut Vec<String>) -> usize {
    let folder = page.path.parent().expect("a page is in a folder");
    let links = page.links();
    for link in &links {
        let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = match file {
            "" => page.path.clone(),
            _ => folder.join(file),
        };
        let name = page.path.display();
        if !target.exists() {
            broken.push(format!("{name}: {link} leads to no file"));
        } else if !anchor.is_empty() && !Page::read(&target).anchors().contains(anchor) {
            broken.push(format!(
                "{name}: {link} names an anchor that the page lacks"
            ));
        }
    }
    links.len()
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
