//! Cookies of a WebSocket transport: issued with the upgrade, stored with a login, deleted with a logout.

mod file;
mod jars;

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use crosstie_auth::wamp::cookie::{Cookies, Record, Remembered};
use crosstie_config::{Cookie, CookieStore};
use crosstie_transport::Connection;
use parking_lot::Mutex;

use crate::peer::{Peer, Wire};
use file::CookieFile;
pub(crate) use jars::Jars;
pub use jars::Whose;

/// The cookies of one path of a transport.
pub(crate) struct Jar {
    options: Cookie,
    state: Mutex<State>,
    file: Option<CookieFile>,
}

struct State {
    cookies: Cookies,
    /// The cookie of each open connection, by the connection's address, which is unique while it is open.
    by_connection: HashMap<usize, Used>,
}

struct Used {
    text: String,
    /// Created for this connection: no other client can know it.
    is_new: bool,
    connection: Weak<Connection>,
    wire: Wire,
}

/// The cookie of a request: its own if that is known, or a new one.
pub(crate) struct Given {
    text: String,
    is_new: bool,
}

impl Jar {
    pub(crate) fn open(options: &Cookie, directory: &Path) -> io::Result<Self> {
        let mut cookies = Cookies::new(options.cookies_max);
        let file = match &options.store {
            CookieStore::File(path) => {
                let path = directory.join(path);
                let file = CookieFile::open(path, &mut cookies, now_ms());
                Some(file?)
            }
            CookieStore::Memory => None,
        };
        Ok(Self {
            options: options.clone(),
            state: Mutex::new(State {
                cookies,
                by_connection: HashMap::new(),
            }),
            file,
        })
    }

    /// The cookie for an upgrade; `None` if the system has no randomness.
    pub(crate) fn give(&self, header: Option<&str>) -> Option<Given> {
        let pairs = header.unwrap_or_default().split(';');
        let mut texts = pairs.filter_map(|pair| {
            let (name, text) = pair.split_once('=')?;
            (name.trim() == self.options.name).then(|| text.trim())
        });
        let state = self.state.lock();
        let now_ms = now_ms();
        let known = texts.find(|text| state.cookies.find(text, now_ms).is_some());
        if let Some(text) = known {
            let text = text.to_owned();
            return Some(Given {
                text,
                is_new: false,
            });
        }
        drop(state);
        let text = random_text(self.options.characters)?;
        Some(Given { text, is_new: true })
    }

    /// The Set-Cookie header, if the client does not have the cookie yet.
    pub(crate) fn header(&self, given: &Given) -> Option<String> {
        given.is_new.then(|| {
            let Cookie {
                name, max_age_s, ..
            } = &self.options;
            let mut header = format!("{name}={};max-age={max_age_s}", given.text);
            let flags = [
                (self.options.secure, ";Secure"),
                (self.options.http_only, ";HttpOnly"),
            ];
            header.extend(flags.iter().filter(|(is_on, _)| *is_on).map(|(_, f)| *f));
            if let Some(same_site) = &self.options.same_site {
                header.push_str(";SameSite=");
                header.push_str(same_site);
            }
            header
        })
    }

    /// Attaches the cookie to its connection.
    pub(crate) fn attach(&self, given: Given, connection: &Arc<Connection>, wire: Wire) {
        let used = Used {
            text: given.text,
            is_new: given.is_new,
            connection: Arc::downgrade(connection),
            wire,
        };
        self.state
            .lock()
            .by_connection
            .insert(key(connection), used);
    }

    /// The connection has ended.
    pub(crate) fn detach(&self, connection: &Arc<Connection>) {
        self.state.lock().by_connection.remove(&key(connection));
    }

    /// The principal of the connection's cookie, if any.
    pub(crate) fn find(&self, connection: &Arc<Connection>) -> Option<Remembered> {
        let state = self.state.lock();
        let used = state.by_connection.get(&key(connection))?;
        state.cookies.find(&used.text, now_ms()).cloned()
    }

    /// Stores a login. A cookie from before the login is replaced: an attacker who planted it in a browser would
    /// otherwise be logged in as this principal.
    pub(crate) fn remember(&self, connection: &Arc<Connection>, who: Remembered) {
        let now_ms = now_ms();
        let mut state = self.state.lock();
        let State {
            cookies,
            by_connection,
        } = &mut *state;
        let Some(used) = by_connection.get(&key(connection)) else {
            return;
        };
        let before = cookies.forget(&used.text);
        let is_own = match &before {
            Some(before) => before.who.realm == who.realm && before.who.authid == who.authid,
            None => used.is_new,
        };
        if !is_own {
            self.note_gone(before.into_iter(), now_ms);
            return;
        }
        let created_ms = before.map_or(now_ms, |before| before.created_ms);
        let record = Record {
            text: used.text.clone(),
            created_ms,
            modified_ms: now_ms,
            max_age_s: self.options.max_age_s,
            who,
        };
        let mut gone = Vec::new();
        if let Some(file) = &self.file {
            file.append(&record, None);
        }
        cookies.keep(record, &mut gone);
        self.note_gone(gone.into_iter(), now_ms);
        self.tidy(cookies);
    }

    /// Deletes the connection's cookie. Returns the other connections that have it.
    pub(crate) fn forget(&self, connection: &Arc<Connection>) -> Vec<Peer> {
        let mut state = self.state.lock();
        let own = key(connection);
        let Some(used) = state.by_connection.get_mut(&own) else {
            return Vec::new();
        };
        // The cookie is invalid, and must not become valid again.
        used.is_new = false;
        let text = used.text.clone();
        let Some(gone) = state.cookies.forget(&text) else {
            return Vec::new();
        };
        self.note_gone(std::iter::once(gone), now_ms());
        self.tidy(&state.cookies);
        let others = state.by_connection.iter();
        let others = others.filter(|(other, used)| **other != own && used.text == text);
        let peers = others.filter_map(|(_, used)| {
            Some(Peer {
                connection: used.connection.upgrade()?,
                wire: used.wire,
            })
        });
        peers.collect()
    }

    /// Deletes a realm's cookies of these principals. Returns their number.
    fn forget_of(&self, realm: &str, whose: (Option<&str>, Option<&str>)) -> usize {
        let mut gone = Vec::new();
        let mut state = self.state.lock();
        state.cookies.forget_of(realm, whose, &mut gone);
        if gone.is_empty() {
            return 0;
        }
        // Connections with such a cookie must not store it again.
        let texts: HashSet<&str> = gone.iter().map(|record| record.text.as_str()).collect();
        for used in state.by_connection.values_mut() {
            used.is_new &= !texts.contains(used.text.as_str());
        }
        let count = gone.len();
        self.note_gone(gone.into_iter(), now_ms());
        self.tidy(&state.cookies);
        count
    }

    fn note_gone(&self, gone: impl Iterator<Item = Record>, now_ms: u64) {
        if let Some(file) = &self.file {
            gone.for_each(|record| file.append(&record, Some(now_ms)));
        }
    }

    /// Rewrites the file if most of it concerns deleted cookies.
    fn tidy(&self, cookies: &Cookies) {
        if let Some(file) = self
            .file
            .as_ref()
            .filter(|file| file.is_long(cookies.len()))
        {
            file.rewrite(cookies.records());
        }
    }
}

fn key(connection: &Arc<Connection>) -> usize {
    Arc::as_ptr(connection) as usize
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// Random characters from 64 that cookies allow (RFC 6265, section 4.1.1).
fn random_text(characters: usize) -> Option<String> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut chance = vec![0; characters];
    getrandom::fill(&mut chance).ok()?;
    let characters = chance.iter();
    Some(
        characters
            .map(|byte| char::from(ALPHABET[usize::from(byte % 64)]))
            .collect(),
    )
}
