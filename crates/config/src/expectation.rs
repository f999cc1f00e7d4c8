//! The expected values of a key, in words for messages.

use crate::catalogue::Kind;
use crate::tree::quoted;

/// The words for a value of this kind, after "must be".
pub(crate) fn expected(kind: &Kind) -> String {
    match kind {
        Kind::Boolean | Kind::Only(..) => "true or false".into(),
        Kind::Always(only, _) => only.to_string(),
        Kind::Integer { min, max, or_zero } => {
            let or_zero = if *or_zero && *min > 0 { "0 or " } else { "" };
            if *max == i64::MAX {
                format!("{or_zero}an integer of at least {min}")
            } else {
                format!("{or_zero}an integer from {min} to {max}")
            }
        }
        Kind::Numbers { numbers, .. } => {
            let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
            numbers.join(" or ")
        }
        Kind::Text(rule) => rule.words().into(),
        Kind::OneOf(words) => one_of(words.words),
        Kind::List { least: 0, .. } => "a list".into(),
        Kind::List { .. } => "a list that is not empty".into(),
        Kind::OneOrMore(of) => format!("{}, or a list of such", expected(of)),
        Kind::Either(one, other) => format!("{}, or {}", expected(one), expected(other)),
        Kind::OrNull(of) => format!("{}, or null", expected(of)),
        Kind::Json => "anything".into(),
        Kind::Map { .. } | Kind::Object(_) | Kind::Tagged(_) => "an object".into(),
    }
}

/// The same as a sentence.
pub(crate) fn expectation(kind: &Kind) -> String {
    match kind {
        Kind::Tagged(tagged) => {
            let names = tagged.variants.iter().map(|(name, _)| *name);
            let names: Vec<&str> = names.collect();
            format!("it must be an object with \"type\" {}", one_of(&names))
        }
        _ => format!("it must be {}", expected(kind)),
    }
}

/// `"a"`, `"a" or "b"`, `one of "a", "b" and "c"`.
pub(crate) fn one_of(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    match words.as_slice() {
        [] => "nothing".into(),
        [one] => one.clone(),
        [one, other] => format!("{one} or {other}"),
        [firsts @ .., last] => format!("one of {} and {last}", firsts.join(", ")),
    }
}
