//! The known name nearest to an unknown one.

use crate::catalogue::{Kind, Table};

/// Whether the kind is a map from free names to texts.
pub(crate) fn of_texts(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Map {
            of: Kind::Text(_),
            ..
        }
    )
}

/// The keys of `table` whose objects have `name`: it was written one level too high.
pub(crate) fn places_below(table: &Table, name: &str) -> Vec<&'static str> {
    fn takes(kind: &Kind, name: &str) -> bool {
        match kind {
            Kind::Object(table) => table.key(name).is_some(),
            Kind::Tagged(tagged) => {
                let mut tables = tagged.variants.iter();
                tables.any(|(_, table)| table.key(name).is_some())
            }
            Kind::List { of, .. } | Kind::Map { of, .. } | Kind::Either(_, of) => takes(of, name),
            _ => false,
        }
    }
    let places = table.keys.iter().filter(|key| takes(&key.kind, name));
    places.map(|key| key.name).collect()
}

/// The known name nearest to `name`: one that starts with it, that it starts with or whose last words it is, or one
/// that differs by at most a third.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| name.to_lowercase().replace(['-', ' '], "_");
    let name = plain(name);
    let distance = |known: &str| {
        let known = plain(known);
        let last_words = known.strip_suffix(&name);
        let last_words = last_words.is_some_and(|before| before.ends_with('_'));
        let begins = known.starts_with(&name) || (known.len() > 3 && name.starts_with(&known));
        if name.len() > 2 && (begins || last_words) {
            return 0;
        }
        match differing(&name, &known) > bound(&known) {
            true => usize::MAX,
            false => strsim::osa_distance(&name, &known),
        }
    };
    let known = known.map(|known| (distance(known), known));
    let (distance, known) = known.min_by_key(|(distance, _)| *distance)?;
    (distance <= bound(known)).then_some(known)
}

/// The distance up to which a name is near.
fn bound(known: &str) -> usize {
    (known.len() / 3).max(1)
}

/// Number of letters that one name has and the other has not, wherever they are: at most the distance, and found faster.
fn differing(one: &str, other: &str) -> usize {
    if !one.is_ascii() || !other.is_ascii() {
        return 0;
    }
    let mut counts = [0_i32; 128];
    one.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    other
        .bytes()
        .for_each(|byte| counts[usize::from(byte)] -= 1);
    let more: i32 = counts.iter().filter(|count| **count > 0).sum();
    let fewer: i32 = counts.iter().filter(|count| **count < 0).sum();
    usize::try_from(more.max(-fewer)).unwrap_or_default()
}
