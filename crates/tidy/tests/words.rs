//! Sentences that must be read twice become fewer: those that begin with a clause in place of a noun, and those whose
//! actor has no role (STYLE.md, Words). The bounds may only fall: a change that rewrites sentences lowers them here.

use std::fs;
use std::path::Path;

use crosstie_tidy::sentences::{Counts, of_comments, of_document};
use crosstie_tidy::{members, root, sources};

/// Sentences that break the first rule, and the second one.
const COMMENTS_MAX: (usize, usize) = (2_350, 855);
const DOCUMENTS_MAX: (usize, usize) = (344, 210);

/// How far a count may be below its bound before the bound has to follow.
const SLACK: usize = 100;

#[test]
fn sentences_of_comments_become_clearer() {
    let all = members();
    let files = all.iter().flat_map(|member| sources(&member.folder));
    let files = files.filter(|file| !file.path.contains("/tests/"));
    holds(
        "comments",
        sum(files.map(|file| of_comments(&file.text))),
        COMMENTS_MAX,
    );
}

#[test]
fn sentences_of_documents_become_clearer() {
    let mut texts = Vec::new();
    for folder in [
        ".",
        "docs",
        "docs/laboratory",
        "docs/web",
        "conformance",
        "fuzz",
        "findings",
    ] {
        collect(&root().join(folder), &mut texts);
    }
    holds(
        "documents",
        sum(texts.iter().map(|text| of_document(text))),
        DOCUMENTS_MAX,
    );
}

/// Adds the pages of a folder.
fn collect(folder: &Path, texts: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable folder").path();
        if path.extension().is_some_and(|extension| extension == "md") {
            texts.push(fs::read_to_string(&path).expect("a page is UTF-8"));
        }
    }
}

fn sum(all: impl Iterator<Item = Counts>) -> Counts {
    all.fold(Counts::default(), |sum, one| Counts {
        sentences: sum.sentences + one.sentences,
        clauses: sum.clauses + one.clauses,
        nameless: sum.nameless + one.nameless,
    })
}

fn holds(what: &str, found: Counts, bound: (usize, usize)) {
    let rules = [
        (
            "begin with Who, What or Where in place of a noun",
            found.clauses,
            bound.0,
        ),
        (
            "name no actor (somebody, nobody, whoever)",
            found.nameless,
            bound.1,
        ),
    ];
    for (rule, found, bound) in rules {
        assert!(
            found <= bound,
            "{found} sentences of {what} {rule}, and {bound} are the most that there may be"
        );
        assert!(
            found + SLACK >= bound,
            "only {found} sentences of {what} {rule}: lower the bound in this file from {bound} to that"
        );
    }
}
