//! Sentences that must be read twice stay rare: those that begin with a clause in place of a noun, and those whose
//! actor has no role (STYLE.md, Words). Projects that serve as models here have at most 3 in a thousand.

use std::fs;
use std::path::Path;

use crosstie_tidy::sentences::{Counts, of_comments, of_document};
use crosstie_tidy::{members, root, sources};

/// Sentences of a thousand that may break a rule.
const PER_THOUSAND: usize = 5;

#[test]
fn comments_are_read_once() {
    let all = members();
    let files = all.iter().flat_map(|member| sources(&member.folder));
    let files = files.filter(|file| !file.path.contains("/tests/"));
    let counted = files.map(|file| (file.path.to_string(), of_comments(&file.text)));
    holds("comments", &counted.collect::<Vec<_>>());
}

#[test]
fn documents_are_read_once() {
    let mut counted = Vec::new();
    for folder in [".", "conformance", "fuzz", "findings", "python"] {
        collect(&root().join(folder), false, &mut counted);
    }
    collect(&root().join("docs"), true, &mut counted);
    holds("documents", &counted);
}

/// Counts the pages of a folder, and of those in it.
fn collect(folder: &Path, is_deep: bool, counted: &mut Vec<(String, Counts)>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() && is_deep {
            collect(&path, true, counted);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&path).expect("a page is UTF-8");
            counted.push((path.display().to_string(), of_document(&text)));
        }
    }
}

type Count = fn(&Counts) -> usize;

fn holds(what: &str, counted: &[(String, Counts)]) {
    let sum = |count: Count| -> usize { counted.iter().map(|(_, counts)| count(counts)).sum() };
    let sentences = sum(|counts| counts.sentences);
    assert!(
        sentences > 1_000,
        "only {sentences} sentences of {what} were found"
    );
    let clauses: Count = |counts| counts.clauses;
    let nameless: Count = |counts| counts.nameless;
    for (rule, count) in [
        ("begin with Who, What or Where", clauses),
        ("name no actor (somebody, nobody)", nameless),
    ] {
        let found = sum(count);
        let mut files: Vec<_> = counted
            .iter()
            .map(|(file, counts)| (count(counts), file))
            .collect();
        files.sort_unstable_by(|one, other| other.cmp(one));
        let worst: Vec<_> = files
            .iter()
            .take(10)
            .filter(|(count, _)| *count > 0)
            .collect();
        assert!(
            found * 1_000 <= sentences * PER_THOUSAND,
            "{found} of {sentences} sentences of {what} {rule}; at most {PER_THOUSAND} of a thousand may: {worst:#?}"
        );
    }
}
