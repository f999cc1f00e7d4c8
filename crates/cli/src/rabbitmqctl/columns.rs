//! The columns that a list command is asked for.

use super::command::Run;
use super::failure::Failure;

/// The named columns, or the usual ones. Several may be in one word, with commas between them.
pub(super) fn wanted<'k>(
    run: &Run,
    known: &[&'k str],
    usual: &[&'k str],
) -> Result<Vec<&'k str>, Failure> {
    let words = run.words.arguments.iter();
    let words = words.flat_map(|word| word.split([',', ' ']));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Ok(usual.to_vec());
    }
    let find = |word: &&str| known.iter().copied().find(|known| known == word);
    let unknown: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| find(word).is_none())
        .collect();
    match unknown.is_empty() {
        true => Ok(words.iter().filter_map(find).collect()),
        false => Err(run.bad_words(&format!(
            "Info key(s) {} are not supported",
            unknown.join(",")
        ))),
    }
}
