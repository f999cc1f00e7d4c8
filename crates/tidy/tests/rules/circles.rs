//! How many files of a crate can only be understood together: the largest circle of imports.

use crosstie_tidy::imports::largest_circle;
use crosstie_tidy::{members, root, sources};

/// Number of files in the largest circle of each crate that has one. A number here may only fall: lower it with the
/// circle. To avoid a larger circle, move the items that both sides use into a file of their own.
const FILES_MAX: &[(&str, usize)] = &[
    ("wamp", 11),
    ("queues", 8),
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
    ("spaces", 4),
    ("fleets", 6),
    ("router", 7),
    ("node", 2),
    ("bench", 7),
    ("report", 5),
    ("lab", 3),
    ("sim", 5),
];

/// Maximum of every number above: a reader can hold a dozen files in mind, and no more.
const FILES_MAX_ANYWHERE: usize = 12;

#[test]
fn no_bound_is_above_a_dozen() {
    for (name, files) in FILES_MAX {
        assert!(
            *files <= FILES_MAX_ANYWHERE,
            "{name}: its circle may have at most {FILES_MAX_ANYWHERE} files, not {files}"
        );
    }
}

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
