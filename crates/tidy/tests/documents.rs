//! Documents lead somewhere: every relative link of every page names a file that is there.

use std::fs;
use std::path::Path;

use crosstie_tidy::root;

#[test]
fn links_lead_to_files() {
    let mut links = 0;
    for folder in [".", "docs", "fuzz", "conformance"] {
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
