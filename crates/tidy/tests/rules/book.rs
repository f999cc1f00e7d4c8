//! The guide is a book: docs/SUMMARY.md lists every page of docs/ once, no page is long, every link stays in the book
//! and leads to a page and an anchor that exist, and so does every redirect of docs/book.toml.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crosstie_tidy::pages::{Page, pages};
use crosstie_tidy::root;

/// A longer page is two pages.
const BYTES_MAX: usize = 30_000;

fn docs() -> PathBuf {
    root().join("docs")
}

/// The pages of the book, without its summary.
fn chapters() -> Vec<Page> {
    let mut found = pages(&docs());
    found.retain(|page| !page.path.ends_with("SUMMARY.md"));
    found
}

/// A page's path below docs/.
fn name(path: &Path) -> String {
    let below = path.strip_prefix(docs()).expect("a page of the book");
    below.to_string_lossy().into_owned()
}

#[test]
fn summary_lists_every_page_once() {
    let mut listed = Page::read(&docs().join("SUMMARY.md")).links();
    listed.sort();
    let mut there: Vec<String> = chapters().iter().map(|page| name(&page.path)).collect();
    there.sort();
    assert_eq!(listed, there, "left: docs/SUMMARY.md; right: the folder");
}

#[test]
fn no_page_is_long() {
    for page in chapters() {
        let name = name(&page.path);
        assert!(
            page.bytes <= BYTES_MAX,
            "{name}: {} bytes; expected at most {BYTES_MAX}",
            page.bytes
        );
    }
}

/// mdBook copies nothing from outside docs/, so that such a link would lead nowhere.
#[test]
fn links_stay_in_the_book() {
    let there: BTreeSet<PathBuf> = chapters()
        .iter()
        .map(|page| page.path.canonicalize().expect("a page exists"))
        .collect();
    for page in chapters() {
        let folder = page.path.parent().expect("a page is in a folder");
        for link in page.links() {
            let file = link.split('#').next().unwrap_or_default();
            let target = folder.join(file).canonicalize();
            assert!(
                file.is_empty() || target.is_ok_and(|target| there.contains(&target)),
                "{}: {link} is no page of the book",
                page.path.display()
            );
        }
    }
}

#[test]
fn redirects_lead_to_pages() {
    let settings = fs::read_to_string(docs().join("book.toml")).expect("docs/book.toml");
    let settings: toml::Table = settings.parse().expect("docs/book.toml is TOML");
    let redirects = settings["output"]["html"]["redirect"]
        .as_table()
        .expect("redirects are a table");
    for (from, to) in redirects {
        let to = to.as_str().expect("a redirect is text");
        let (address, anchor) = to.split_once('#').unwrap_or((to, ""));
        let is_from_page = from.starts_with('/') && from.contains(".html");
        assert!(
            is_from_page,
            "{from}: expected /PAGE.html or /PAGE.html#ANCHOR"
        );
        // The address is relative to the page that it replaces.
        let folder = docs().join(&from[1..]);
        let folder = folder.parent().expect("an address has a folder");
        let page = folder.join(address.replace(".html", ".md"));
        let page = if page.exists() {
            page
        } else {
            folder.join(address.replace("index.html", "README.md"))
        };
        assert!(page.exists(), "{from} leads to {to}, which is no page");
        assert!(
            anchor.is_empty() || Page::read(&page).anchors().contains(anchor),
            "{from} leads to {to}, an anchor that the page lacks"
        );
    }
}
