//! Sentences of comments and documents, and the two rules of STYLE.md that a program can count.

/// Words that begin a clause in place of a noun.
const CLAUSES: [&str; 7] = [
    "who", "whoever", "whom", "whose", "what", "whatever", "where",
];
/// Actors without a role.
const NAMELESS: [&str; 5] = ["whoever", "somebody", "nobody", "everybody", "anybody"];
/// Fewer words are a title or a label.
const WORDS_MIN: usize = 4;

/// How many sentences there are, and how many break a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub sentences: usize,
    /// Sentences that begin with a clause in place of a noun.
    pub clauses: usize,
    /// Sentences with an actor that has no role.
    pub nameless: usize,
}

impl Counts {
    /// Adds what a paragraph has.
    fn add(&mut self, paragraph: &str) {
        for sentence in split(paragraph) {
            let word = |text: &str| {
                text.trim_matches(|c: char| !c.is_alphabetic())
                    .to_lowercase()
            };
            let is_any_of = |words: &[&str], text: &str| words.contains(&word(text).as_str());
            self.sentences += 1;
            self.clauses += usize::from(is_any_of(&CLAUSES, sentence[0]));
            self.nameless += usize::from(sentence.iter().any(|text| is_any_of(&NAMELESS, text)));
        }
    }
}

/// The sentences of a paragraph, as words.
fn split(paragraph: &str) -> Vec<Vec<&str>> {
    let mut sentences = vec![Vec::new()];
    let mut words = paragraph.split_whitespace().peekable();
    while let Some(word) = words.next() {
        sentences.last_mut().expect("one is begun").push(word);
        let ends = word.ends_with(['.', '!', '?']);
        let begins =
            |next: &&str| next.starts_with(|c: char| c.is_uppercase() || "`\"[(*".contains(c));
        if ends && words.peek().is_some_and(begins) {
            sentences.push(Vec::new());
        }
    }
    sentences.retain(|sentence| sentence.len() >= WORDS_MIN);
    sentences
}

/// Counts the sentences in the comments of a Rust source.
pub fn of_comments(text: &str) -> Counts {
    let comment = |line: &str| {
        let line = line.trim_start().strip_prefix("//")?;
        Some(line.trim_start_matches(['/', '!']).to_owned())
    };
    let lines: Vec<_> = text
        .lines()
        .map(|line| comment(line).unwrap_or_default())
        .collect();
    paragraphs(lines.iter().map(String::as_str))
}

/// Counts the sentences of a document in Markdown.
pub fn of_document(text: &str) -> Counts {
    let mut lines = Vec::new();
    for line in text.lines() {
        match line.trim_start().starts_with('|') {
            // A cell is a paragraph.
            true => lines.extend(line.split('|').flat_map(|cell| [cell, ""])),
            false => {
                if line.trim_start().starts_with(['*', '#', '-']) {
                    lines.push("");
                }
                lines.push(line.trim_start_matches(['#', '>', '*', '-', ' ']));
            }
        }
    }
    paragraphs(lines.into_iter())
}

/// Counts the sentences between empty lines, without examples.
fn paragraphs<'t>(lines: impl Iterator<Item = &'t str>) -> Counts {
    let mut counts = Counts::default();
    let mut paragraph = String::new();
    let mut is_example = false;
    for line in lines {
        let is_fence = line.trim_start().starts_with("```");
        if is_fence || line.trim().is_empty() {
            counts.add(&paragraph);
            paragraph.clear();
        }
        is_example ^= is_fence;
        if !is_fence && !is_example {
            paragraph.push_str(line);
            paragraph.push(' ');
        }
    }
    counts.add(&paragraph);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_counted_by_sentences() {
        let text = "//! What it is for, and why. The rest follows\n//! on the next line.\nfn a() {}\n\
                    // Nobody reads this sentence twice. Short one.\n//\n// ```\n// Who would read code?\n// ```\n";
        let expected = Counts {
            sentences: 3,
            clauses: 1,
            nameless: 1,
        };
        assert_eq!(of_comments(text), expected);
    }

    #[test]
    fn cells_and_items_of_documents_are_paragraphs() {
        let text = "# Where is it from\n\n- Whose turn it is, is counted. `A` goes on to the next.\n\
                    | Who it says that it is | a second cell of four |\n|---|---|\n";
        let expected = Counts {
            sentences: 5,
            clauses: 3,
            nameless: 0,
        };
        assert_eq!(of_document(text), expected);
    }
}
