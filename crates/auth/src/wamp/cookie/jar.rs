//! Login cookies, in bounded memory.
//!
//! A cookie is stored from the login that it stands for. Before a login the router stores nothing: a client that
//! requests cookies without end gets random texts and costs nothing. A text that is not stored identifies no client.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::{Record, Remembered};

/// The cookies of one transport.
#[derive(Debug)]
pub struct Cookies {
    by_text: HashMap<String, Kept>,
    /// Oldest first.
    by_age: BTreeMap<u64, String>,
    /// The keys in `by_age` of each principal's cookies by realm, oldest first.
    of_principals: HashMap<(String, String), VecDeque<u64>>,
    last: u64,
    cookies_max: usize,
}

#[derive(Debug)]
struct Kept {
    place: u64,
    record: Record,
}

impl Cookies {
    /// Maximum number of cookies of one principal. A further login evicts the principal's oldest cookie, so that no
    /// principal can evict another's.
    pub const OF_PRINCIPAL_MAX: usize = 64;

    pub fn new(cookies_max: usize) -> Self {
        Self {
            by_text: HashMap::new(),
            by_age: BTreeMap::new(),
            of_principals: HashMap::new(),
            last: 0,
            cookies_max,
        }
    }

    /// The login that a cookie stands for, at a time in milliseconds since 1970.
    pub fn find(&self, text: &str, now_ms: u64) -> Option<&Remembered> {
        let record = &self.by_text.get(text)?.record;
        (now_ms < record.expires_ms()).then_some(&record.who)
    }

    /// Stores a cookie; replaces an older record of it. Evicted records are appended to `gone`.
    pub fn keep(&mut self, record: Record, gone: &mut Vec<Record>) {
        self.forget(&record.text);
        let now_ms = record.modified_ms;
        let is_over = |jar: &Self| {
            let oldest = jar.by_age.first_key_value();
            let oldest = oldest.and_then(|(_, text)| jar.by_text.get(text));
            oldest.is_some_and(|kept| kept.record.expires_ms() <= now_ms)
        };
        while self.by_text.len() >= self.cookies_max || is_over(self) {
            let Some((_, text)) = self.by_age.pop_first() else {
                break;
            };
            gone.extend(self.forget(&text));
        }
        let places = self.of_principals.get(&principal(&record));
        let oldest = places.filter(|places| places.len() >= Self::OF_PRINCIPAL_MAX);
        let oldest = oldest.and_then(|places| self.by_age.get(places.front()?));
        if let Some(text) = oldest.cloned() {
            gone.extend(self.forget(&text));
        }
        self.last += 1;
        let place = self.last;
        self.by_age.insert(place, record.text.clone());
        let places = self.of_principals.entry(principal(&record));
        places.or_default().push_back(place);
        self.by_text
            .insert(record.text.clone(), Kept { place, record });
    }

    /// Removes a cookie, if it is stored.
    pub fn forget(&mut self, text: &str) -> Option<Record> {
        let Kept { place, record } = self.by_text.remove(text)?;
        self.by_age.remove(&place);
        let principal = principal(&record);
        if let Some(places) = self.of_principals.get_mut(&principal) {
            places.retain(|of| *of != place);
            if places.is_empty() {
                self.of_principals.remove(&principal);
            }
        }
        Some(record)
    }

    /// Removes a realm's cookies of one principal, of one role, or all. The removed records are appended to `gone`.
    pub fn forget_of(
        &mut self,
        realm: &str,
        (authid, authrole): (Option<&str>, Option<&str>),
        gone: &mut Vec<Record>,
    ) {
        let meant: Vec<String> = match authid {
            Some(authid) => {
                let places = self
                    .of_principals
                    .get(&(realm.to_owned(), authid.to_owned()));
                let places = places.into_iter().flatten();
                places
                    .filter_map(|place| self.by_age.get(place))
                    .cloned()
                    .collect()
            }
            None => {
                let is_meant = |who: &Remembered| {
                    who.realm == realm && authrole.is_none_or(|role| *who.authrole == *role)
                };
                let meant = self.records().filter(|record| is_meant(&record.who));
                meant.map(|record| record.text.clone()).collect()
            }
        };
        gone.extend(meant.iter().filter_map(|text| self.forget(text)));
    }

    pub fn len(&self) -> usize {
        self.by_text.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_text.is_empty()
    }

    /// All records, oldest first.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        let texts = self.by_age.values();
        texts.filter_map(|text| Some(&self.by_text.get(text)?.record))
    }
}

fn principal(record: &Record) -> (String, String) {
    (record.who.realm.clone(), record.who.authid.clone())
}
