//! Texts by their lines: their difference, and a change applied to a text that was edited elsewhere.

use std::fmt::Write as _;
use std::ops::Range;

/// A place in which two texts differ.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hunk {
    old: Range<usize>,
    new: Range<usize>,
}

/// The change touches a line that was edited.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    /// The line's number in the edited text, from 1.
    pub(super) line: usize,
    pub(super) expected: String,
    pub(super) found: String,
}

/// Maximum number of different lines for which the least difference is searched. Beyond that, all lines between the
/// equal beginnings and ends count as different.
const DIFFERENT_LINES_MAX: usize = 2_000;

/// Applies the change from `base` to `new` to `edited`, which was `base` before others edited it. An edit is kept
/// unless the change touches the same line or the next one.
pub(super) fn merge(base: &str, edited: &str, new: &str) -> Result<String, Conflict> {
    let [base, edited, new] = [base, edited, new].map(lines);
    let mut places = vec![None; base.len()];
    let mut at = 0..0;
    for hunk in ended(difference(&base, &edited), base.len(), edited.len()) {
        for (old, found) in (at.start..hunk.old.start).zip(at.end..hunk.new.start) {
            places[old] = Some(found);
        }
        at = hunk.old.end..hunk.new.end;
    }
    let mut merged = Vec::new();
    let mut copied = 0;
    for Hunk { old, new: put } in difference(&base, &new) {
        // The lines around the hunk must be there, with nothing else between them.
        let first = match old.start.checked_sub(1) {
            None => Some(0),
            Some(before) => places[before].map(|place: usize| place + 1),
        };
        let end = places.get(old.end).copied().unwrap_or(Some(edited.len()));
        let there = first
            .zip(end)
            .map(|(first, end)| (first, end, &edited[first..end]));
        let (first, end, there) = there.ok_or_else(|| conflict(&base, &edited, &places, &old))?;
        if there != &base[old.clone()] && there != &new[put.clone()] {
            return Err(conflict(&base, &edited, &places, &old));
        }
        merged.extend_from_slice(&edited[copied..first]);
        merged.extend_from_slice(&new[put]);
        copied = end;
    }
    merged.extend_from_slice(&edited[copied..]);
    Ok(merged.concat())
}

/// The first line in and around a hunk that is not where it was.
fn conflict(
    base: &[&str],
    edited: &[&str],
    places: &[Option<usize>],
    hunk: &Range<usize>,
) -> Conflict {
    let first = hunk.start.saturating_sub(1);
    let before = places[..first].iter().rev().find_map(|place| *place);
    let mut at = before.map_or(0, |before| before + 1);
    let mut expected = first;
    while let Some(Some(place)) = places.get(expected)
        && (*place == at || expected == first && first > 0)
        && expected < hunk.end
    {
        at = place + 1;
        expected += 1;
    }
    let text = |lines: &[&str], at: usize| {
        let line = lines.get(at).map(|line| line.trim().to_owned());
        line.unwrap_or_else(|| "the end".to_owned())
    };
    Conflict {
        line: at + 1,
        expected: text(base, expected),
        found: text(edited, at),
    }
}

/// Lines around each difference.
const CONTEXT_LINES: usize = 3;

/// The difference as `diff -u` shows it, without its head.
pub(super) fn shown(old: &str, new: &str) -> String {
    let [old, new] = [old, new].map(lines);
    let mut text = String::new();
    let hunks = difference(&old, &new);
    let near = |one: &Hunk, next: &Hunk| next.old.start - one.old.end <= 2 * CONTEXT_LINES;
    for group in hunks.chunk_by(near) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let before = first.old.start.min(CONTEXT_LINES);
        let after = (old.len() - last.old.end).min(CONTEXT_LINES);
        let olds = first.old.start - before..last.old.end + after;
        let news = first.new.start - before..last.new.end + after;
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            text,
            "@@ -{},{} +{},{} @@",
            olds.start + 1,
            olds.len(),
            news.start + 1,
            news.len()
        );
        let mut put = |sign: char, lines: &[&str]| {
            for line in lines {
                let _ = writeln!(text, "{sign}{}", line.trim_end_matches('\n'));
            }
        };
        let mut at = olds.start;
        for hunk in group {
            put(' ', &old[at..hunk.old.start]);
            put('-', &old[hunk.old.clone()]);
            put('+', &new[hunk.new.clone()]);
            at = hunk.old.end;
        }
        put(' ', &old[at..olds.end]);
    }
    text
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The hunks, and an empty one behind the last line.
fn ended(mut hunks: Vec<Hunk>, old: usize, new: usize) -> Vec<Hunk> {
    hunks.push(Hunk {
        old: old..old,
        new: new..new,
    });
    hunks
}

/// The least difference of two texts, by Myers' algorithm.
fn difference(old: &[&str], new: &[&str]) -> Vec<Hunk> {
    let pairs = old.iter().zip(new);
    let head = pairs.take_while(|(old, new)| old == new).count();
    let (inner_old, inner_new) = (&old[head..], &new[head..]);
    let pairs = inner_old.iter().rev().zip(inner_new.iter().rev());
    let tail = pairs.take_while(|(old, new)| old == new).count();
    let inner_old = &inner_old[..inner_old.len() - tail];
    let inner_new = &inner_new[..inner_new.len() - tail];
    let whole = || {
        vec![Hunk {
            old: 0..inner_old.len(),
            new: 0..inner_new.len(),
        }]
    };
    let hunks = match (inner_old.is_empty(), inner_new.is_empty()) {
        (true, true) => Vec::new(),
        (false, false) => least(inner_old, inner_new).unwrap_or_else(whole),
        _ => whole(),
    };
    let moved = |range: Range<usize>| range.start + head..range.end + head;
    let hunks = hunks.into_iter().map(|hunk| Hunk {
        old: moved(hunk.old),
        new: moved(hunk.new),
    });
    hunks.collect()
}

/// For each number of differences, the furthest line of `old` on each diagonal; the last round reaches both ends.
/// Place `p` of round `r` is the diagonal on which `old` is `2 * p - r` lines ahead of `new`.
type Rounds = Vec<Vec<Option<usize>>>;

/// The least difference; `None` if it is beyond the bound.
fn least(old: &[&str], new: &[&str]) -> Option<Vec<Hunk>> {
    let mut rounds = Rounds::new();
    for round in 0..=DIFFERENT_LINES_MAX.min(old.len() + new.len()) {
        let mut reached = Vec::with_capacity(round + 1);
        for place in 0..=round {
            let start = match rounds.last() {
                None => Some(0),
                Some(before) => step(before, place, (old.len(), new.len())).map(|(x, _)| x),
            };
            let end = start.map(|x| {
                let y = x + round - 2 * place;
                let pairs = old[x..].iter().zip(&new[y..]);
                x + pairs.take_while(|(old, new)| old == new).count()
            });
            let is_end = end == Some(old.len()) && old.len() + round == new.len() + 2 * place;
            reached.push(end);
            if is_end {
                return Some(hunks(&rounds, place, (old.len(), new.len())));
            }
        }
        rounds.push(reached);
    }
    None
}

/// The beginning of a diagonal, from the round before, and whether a line of `old` is removed there; otherwise one of
/// `new` is added.
fn step(
    before: &[Option<usize>],
    place: usize,
    (olds, news): (usize, usize),
) -> Option<(usize, bool)> {
    let round = before.len();
    let left = place.checked_sub(1).and_then(|left| before[left]);
    let removed = left.map(|x| x + 1).filter(|x| *x <= olds);
    let added = before.get(place).copied().flatten();
    let added = added.filter(|x| x + round - 2 * place <= news);
    match (removed, added) {
        (Some(removed), added) if added.is_none_or(|added| removed > added) => {
            Some((removed, true))
        }
        (_, added) => added.map(|x| (x, false)),
    }
}

/// Goes back through the rounds before the last one, from the end of both texts.
fn hunks(rounds: &Rounds, mut place: usize, ends: (usize, usize)) -> Vec<Hunk> {
    let mut found: Vec<Hunk> = Vec::new();
    for before in rounds.iter().rev() {
        let Some((x, is_removed)) = step(before, place, ends) else {
            break;
        };
        let y = x + before.len() - 2 * place;
        let (old, new) = match is_removed {
            true => (x - 1..x, y..y),
            false => (x..x, y - 1..y),
        };
        match found.last_mut() {
            Some(next) if next.old.start == old.end && next.new.start == new.end => {
                (next.old.start, next.new.start) = (old.start, new.start);
            }
            _ => found.push(Hunk { old, new }),
        }
        place -= usize::from(is_removed);
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text with a line for each letter.
    fn text(letters: &str) -> String {
        letters
            .chars()
            .map(|letter| format!("{letter}\n"))
            .collect()
    }

    #[test]
    fn a_difference_is_least_and_leads_from_one_text_to_the_other() {
        let mut state = 7_u64;
        let mut letter = |count: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % count
        };
        for _ in 0..2_000 {
            let [old, new] = [(); 2].map(|()| {
                let length = letter(12);
                let letters = (0..length).map(|_| char::from(b'a' + letter(4) as u8));
                text(&letters.collect::<String>())
            });
            let (olds, news) = (lines(&old), lines(&new));
            let hunks = difference(&olds, &news);
            let (mut made, mut at, mut changed) = (String::new(), 0, 0);
            for Hunk { old, new } in &hunks {
                made += &olds[at..old.start].concat();
                made += &news[new.clone()].concat();
                at = old.end;
                changed += old.len() + new.len();
            }
            made += &olds[at..].concat();
            assert_eq!(made, new, "{old:?}");
            assert_eq!(changed, olds.len() + news.len() - 2 * shared(&olds, &news));
        }
    }

    /// The length of the longest common subsequence.
    fn shared(old: &[&str], new: &[&str]) -> usize {
        let mut row = vec![0; new.len() + 1];
        for line in old {
            let mut before = 0;
            for (at, other) in new.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = match line == other {
                    true => before + 1,
                    false => above.max(row[at]),
                };
                before = above;
            }
        }
        row[new.len()]
    }

    #[test]
    fn a_change_keeps_edits_elsewhere_and_is_refused_on_an_edited_line() {
        #[track_caller]
        fn check(base: &str, edited: &str, new: &str, expected: Result<&str, (usize, &str, &str)>) {
            let merged = merge(&text(base), &text(edited), &text(new));
            let merged = merged.map_err(|it| (it.line, it.expected, it.found));
            let expected = expected.map(text);
            let expected = expected.map_err(|(line, a, b)| (line, a.to_owned(), b.to_owned()));
            assert_eq!(merged, expected, "{base} {edited} {new}");
        }
        check("abc", "abc", "abXc", Ok("abXc"));
        check("abcdef", "1abcdeZf", "abcXdef", Ok("1abcXdeZf"));
        check("abcdef", "abcXdeZf", "abcXdef", Ok("abcXdeZf"));
        check("abcdef", "aZcdef", "abcdXf", Ok("aZcdXf"));
        check("abcdef", "abcde", "Xbcdef", Ok("Xbcde"));
        check("abc", "", "abc", Ok(""));
        check("abcdef", "abZdef", "abXdef", Err((3, "c", "Z")));
        check("abcdef", "abcZdef", "abcXdef", Err((4, "d", "Z")));
        check("abcdef", "abdef", "abXdef", Err((3, "c", "d")));
        check("abc", "a", "abcX", Err((2, "c", "the end")));
    }

    #[test]
    fn a_difference_is_shown_with_the_lines_around_it() {
        let old = text("abcdefghijklmn");
        let new = text("abcdefgXhijklmN");
        let expected = "@@ -5,10 +5,11 @@\n e\n f\n g\n+X\n h\n i\n j\n k\n l\n m\n-n\n+N\n";
        assert_eq!(shown(&old, &new), expected);
        assert_eq!(shown(&old, &old), "");
        assert_eq!(shown("", "a\n"), "@@ -1,0 +1,1 @@\n+a\n");
    }

    #[test]
    fn a_difference_beyond_the_bound_is_one_place() {
        let [old, new] = ["a", "b"].map(|word| {
            let lines = (0..DIFFERENT_LINES_MAX).map(|n| format!("{word}{n}\n"));
            lines.collect::<String>()
        });
        assert_eq!(difference(&lines(&old), &lines(&new)).len(), 1);
    }
}
