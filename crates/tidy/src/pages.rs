//! Pages in Markdown: their prose, the links in it, and the anchors of their headings.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A page, with its text outside code blocks.
#[derive(Debug)]
pub struct Page {
    pub path: PathBuf,
    /// The lines outside fenced blocks.
    prose: Vec<String>,
    pub bytes: usize,
}

impl Page {
    /// Reads a page.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a page is UTF-8");
        let mut is_code = false;
        let mut prose = Vec::new();
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            } else if !is_code {
                prose.push(line.to_owned());
            }
        }
        assert!(!is_code, "{}: a code block does not end", path.display());
        Self {
            path: path.to_owned(),
            prose,
            bytes: text.len(),
        }
    }

    /// The targets of its links, without those to other sites.
    pub fn links(&self) -> Vec<String> {
        let text = without_code(&self.prose.join("\n"));
        let targets = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        let inner = targets.filter(|target| !target.contains("://"));
        inner.map(str::to_owned).collect()
    }

    /// The anchors that a link may name, as GitHub and mdBook make them.
    pub fn anchors(&self) -> BTreeSet<String> {
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        let mut anchors = BTreeSet::new();
        for line in &self.prose {
            let title = line.trim_start_matches('#');
            if title.len() < line.len() && title.starts_with(' ') {
                let anchor = anchor(title);
                let before = seen.entry(anchor.clone()).or_default();
                anchors.insert(match *before {
                    0 => anchor,
                    number => format!("{anchor}-{number}"),
                });
                *before += 1;
            }
            let explicit = line.split("<a id=\"").skip(1);
            anchors.extend(explicit.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
        anchors
    }
}

/// Every page of a folder, and of the folders in it.
pub fn pages(folder: &Path) -> Vec<Page> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(Page::read(&path));
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The text without what stands in backticks.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect()
}

/// The anchor of a heading: its letters, digits and dashes, in lower case, with a dash for each space.
fn anchor(title: &str) -> String {
    let mut text = String::new();
    let mut rest = title.trim();
    // A link counts with its text.
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let characters = text.chars().filter_map(|character| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        _ if character.is_alphanumeric() => Some(character),
        _ => None,
    });
    characters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_the_renderers() {
        let rows = [
            (" Who gets in", "who-gets-in"),
            (
                " `workers[].router.amqp.limits`: the limits",
                "workersrouteramqplimits-the-limits",
            ),
            (" [Links](rlinks.md) of a node", "links-of-a-node"),
            (" *One* callee, strictly", "one-callee-strictly"),
        ];
        for (title, expected) in rows {
            assert_eq!(anchor(title), expected);
        }
    }

    #[test]
    fn code_has_no_links() {
        assert_eq!(without_code("a `[b](c)` d"), "a  d");
    }
}
