//! Test cases of a state machine as text, for the tests of other crates: a line is an input, or an output that the
//! inputs before it must have caused.
//!
//! ```text
//! == the name of a case
//! A> …        an input, which the player reads
//! A< …        the next output to A, word by word
//! A! …        the next fault of A
//! AB: …       the input `A: …`, then `B: …`
//! A> … 1..3   the input once for each number
//! // …        a comment
//! ```
//!
//! In an expected output `*` is any one word, `…` the rest, and `#x` a text that is bound to `x` where it occurs first,
//! and compared from then on. Each output must be named before the next input.

mod labels;
mod stage;

pub use labels::Labels;
pub use stage::Stage;

/// Plays the lines of one case.
pub trait Player {
    /// The outputs and faults so far.
    fn stage(&mut self) -> &mut Stage;

    /// Plays an input: the first word of its line, and the rest.
    fn play(&mut self, head: &str, rest: &str) -> Result<(), String>;

    /// Ends the case, and checks that nothing is left.
    fn finish(&mut self) -> Result<(), String>;
}

/// Plays all cases of a file, each with a new player; returns how many, and appends failures.
pub fn play<P: Player>(
    file: &str,
    text: &str,
    new: impl Fn() -> P,
    failures: &mut Vec<String>,
) -> usize {
    let mut cases = 0;
    let mut case: Option<(&str, Option<P>)> = None;
    let mut last = 0;
    let fail = |line: usize, name: &str, text: String| format!("{file}:{line}: {name}: {text}");
    for (index, line) in text.lines().chain(["== "]).enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("==") {
            if let Some((name, Some(mut player))) = case.take()
                && let Err(text) = settle(&mut player).and_then(|()| player.finish())
            {
                failures.push(fail(last, name, text));
            }
            cases += usize::from(!name.is_empty());
            case = Some((name.trim(), Some(new())));
        } else if !line.is_empty() && !line.starts_with("//") {
            last = index + 1;
            let (name, player) = case.as_mut().expect("a script begins with a case");
            if let Some(playing) = player
                && let Err(text) = step(playing, line)
            {
                failures.push(fail(last, name, text));
                *player = None;
            }
        }
    }
    cases
}

fn step<P: Player>(player: &mut P, line: &str) -> Result<(), String> {
    let (head, rest) = line.split_once(' ').unwrap_or((line, ""));
    if let Some(who) = head.strip_suffix('<') {
        return player.stage().expect(who, rest);
    }
    if let Some(who) = head.strip_suffix('!') {
        return player.stage().expect_fault(who, rest);
    }
    let is_upper = |c: char| c.is_ascii_uppercase();
    if let Some((names, "")) = head
        .rsplit_once(':')
        .filter(|(names, _)| names.len() > 1 && names.chars().all(is_upper))
    {
        let mut names = names.chars();
        return names.try_for_each(|name| step(player, &format!("{name}: {rest}")));
    }
    if let Some((range, numbers)) = rest.split(' ').find_map(range) {
        let line = |number: u32| line.replacen(range, &number.to_string(), 1);
        return numbers
            .into_iter()
            .try_for_each(|number| step(player, &line(number)));
    }
    settle(player)?;
    player.play(head, rest)
}

/// A word of the form `1..3`, and its numbers.
fn range(word: &str) -> Option<(&str, std::ops::RangeInclusive<u32>)> {
    let (first, last) = word.split_once("..")?;
    Some((word, first.parse().ok()?..=last.parse().ok()?))
}

fn settle<P: Player>(player: &mut P) -> Result<(), String> {
    player.stage().expect_nothing_more()
}

/// The words of a line as keys with values; the value of a word without `=` is empty.
pub fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let words = text.split(' ').filter(|word| !word.is_empty());
    words.map(|word| word.split_once('=').unwrap_or((word, "")))
}

/// A time, such as `100ms` or `3s`.
pub fn milliseconds(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (text.strip_suffix('s').unwrap_or_default(), 1000),
    };
    let number: u64 = number.parse().map_err(|_| format!("{text} is no time"))?;
    Ok(number * unit)
}

/// A number in a line.
pub fn number<T: std::str::FromStr>(key: &str, text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{key} needs a number, not {text}"))
}
