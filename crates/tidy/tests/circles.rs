//! How many files of a crate can only be understood together: the largest circle of imports.

use crosstie_tidy::imports::largest_circle;
use crosstie_tidy::{members, root, sources};

/// How many files the largest circle of each crate has, where there is one. A number here may only
/// fall: who makes a circle smaller lowers it, and who would make one larger moves what both sides
/// use into a file of its own.
const FILES_MAX: &[(&str, usize)] = &[
    ("wamp", 11),
    ("queues", 3),
    ("store", 2),
    ("routing", 9),
    ("config", 5),
    ("transport", 6),
    ("testee", 5),
    ("client", 2),
    ("oslo", 7),
    ("realms", 4),
    ("broker", 11),
    ("site", 5),
    ("router", 7),
    ("node", 2),
    ("bench", 7),
    ("report", 5),
    ("lab", 3),
    ("sim", 5),
];

#[test]
fn circles_of_imports_do_not_grow() {
    let mut grown = Vec::new();
    for member in members() {
        let known = FILES_MAX.iter().find(|(name, _)| *name == member.name);
        let files_max = known.map_or(1, |(_, files)| *files);
        let folder = member.folder.join("src");
        let short = folder.strip_prefix(root()).expect("below the root");
        let circle = largest_circle(&format!("{}/", short.display()), &sources(&folder));
        if circle.len() > files_max {
            grown.push(format!(
                "{}: {} files import each other in a circle, where there were {files_max}:\n  {}",
                member.name,
                circle.len(),
                circle.join("\n  ")
            ));
        }
    }
    assert!(grown.is_empty(), "{}", grown.join("\n"));
}
