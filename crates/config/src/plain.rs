//! Keys read as plain types: the half of `table!` that a checked object goes through.
//!
//! The tables bound every number, so that a conversion loses nothing.

use std::time::Duration;

use crate::model::Json;
use crate::tree::Value;
use crate::view::View;

/// A struct that `table!` reads from the object of its table.
pub(crate) trait Section: Sized {
    fn read(view: View<'_>) -> Self;
}

/// A type that one key is read as, with the table's default if the key is not given.
pub(crate) trait Plain: Sized {
    fn read(view: View<'_>, key: &str) -> Self;
}

/// An enum that `words!` reads. The first value is that of a key without a word.
pub(crate) trait Word: Copy + 'static {
    const WORDS: &[(&str, Self)];

    fn of(word: &str) -> Option<Self> {
        let known = Self::WORDS.iter().find(|(known, _)| *known == word);
        known.map(|(_, value)| *value)
    }
}

impl<W: Word> Plain for W {
    fn read(view: View<'_>, key: &str) -> Self {
        let given = view.text(key).and_then(Self::of);
        given.unwrap_or(Self::WORDS[0].1)
    }
}

macro_rules! plain {
    ($($Type:ty: |$view:ident, $key:ident| $read:expr;)*) => {
        $(
            impl Plain for $Type {
                fn read($view: View<'_>, $key: &str) -> Self {
                    $read
                }
            }
        )*
    };
}

plain! {
    bool: |view, key| view.boolean(key);
    String: |view, key| view.text(key).unwrap_or_default().to_owned();
    Option<String>: |view, key| view.text(key).map(str::to_owned);
    Vec<String>: |view, key| view.texts(key).map(str::to_owned).collect();
    Vec<usize>: |view, key| view.integers(key).map(size).collect();
    Vec<(String, String)>: |view, key| view.variables(key);
    Json: |view, key| view.json(key);
    usize: |view, key| number(view, key);
    u64: |view, key| number(view, key);
    u32: |view, key| number(view, key);
    u16: |view, key| number(view, key);
    u8: |view, key| number(view, key);
    Option<usize>: |view, key| view.integer(key).map(size);
    Option<u32>: |view, key| view.integer(key).and_then(|n| n.try_into().ok());
    Option<u16>: |view, key| view.integer(key).and_then(|n| n.try_into().ok());
    Option<u8>: |view, key| view.integer(key).and_then(|n| n.try_into().ok());
    // Milliseconds; an optional time is none at 0.
    Duration: |view, key| Duration::from_millis(number(view, key));
    Option<Duration>: |view, key| Some(Duration::read(view, key)).filter(|time| !time.is_zero());
}

fn number<N: TryFrom<i64> + Default>(view: View<'_>, key: &str) -> N {
    let given = view.integer(key);
    given.and_then(|n| n.try_into().ok()).unwrap_or_default()
}

pub(crate) fn size(number: i64) -> usize {
    number.try_into().unwrap_or(usize::MAX)
}

/// An object of a table that `tables!` reads.
pub(crate) fn section<S: Section>(view: View<'_>, key: &str) -> S {
    S::read(view.section(key))
}

pub(crate) fn optional_section<S: Section>(view: View<'_>, key: &str) -> Option<S> {
    view.object(key).map(S::read)
}

/// The objects of a list.
pub(crate) fn sections<S: Section>(view: View<'_>, key: &str) -> Vec<S> {
    view.objects(key).map(S::read).collect()
}

/// None at 0.
pub(crate) fn positive<N: Plain + Default + PartialEq>(view: View<'_>, key: &str) -> Option<N> {
    Some(N::read(view, key)).filter(|number| *number != N::default())
}

/// A time in seconds.
pub(crate) fn seconds(view: View<'_>, key: &str) -> Duration {
    Duration::from_secs(number(view, key))
}

/// A time in seconds; none for null, and without a number or default.
pub(crate) fn seconds_or_null(view: View<'_>, key: &str) -> Option<Duration> {
    match view.given(key).map(|node| &node.value) {
        Some(Value::Null) => None,
        _ => view.integer(key).map(|_| seconds(view, key)),
    }
}

/// A time in seconds; none for 0 and null.
pub(crate) fn positive_seconds(view: View<'_>, key: &str) -> Option<Duration> {
    seconds_or_null(view, key).filter(|time| !time.is_zero())
}

/// Media types by file name ending, with its dot and in lower case.
pub(crate) fn mime_types(view: View<'_>, key: &str) -> Vec<(String, String)> {
    let types = view.variables(key).into_iter();
    let dotted = |ending: String| match ending.starts_with('.') {
        true => ending.to_lowercase(),
        false => format!(".{}", ending.to_lowercase()),
    };
    types.map(|(ending, kind)| (dotted(ending), kind)).collect()
}

/// A time in milliseconds; none only without a number or default.
pub(crate) fn milliseconds_if_given(view: View<'_>, key: &str) -> Option<Duration> {
    view.integer(key).map(|_| Duration::read(view, key))
}
