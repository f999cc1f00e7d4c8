//! Cookies of WebSocket transports.

use super::Builder;
use crate::model::{Cookie, CookieStore};
use crate::plain::Section;
use crate::problem::Problem;
use crate::tree::quoted;
use crate::view::View;

/// 128 bits of 6 each.
const CHARACTERS_ENOUGH: usize = 22;

impl Builder<'_> {
    pub(super) fn cookie(&mut self, websocket: View<'_>) -> Option<Box<Cookie>> {
        let auth = websocket.section("auth");
        let Some(cookie) = websocket.object("cookie") else {
            if auth.given("cookie").is_some() {
                let message = "nobody comes in by a cookie without \"cookie\" beside \"auth\"";
                self.warn(auth, "cookie", message);
            }
            return None;
        };
        if auth.given("cookie").is_none() {
            let message = "nobody is known again by it without \"cookie\" in \"auth\"";
            self.problems
                .push(Problem::warning(cookie.span, message.into()));
        }
        let given = cookie;
        let cookie = Cookie::read(given);
        let characters = cookie.characters;
        if characters < CHARACTERS_ENOUGH {
            let message = format!(
                "a cookie of {characters} characters can be guessed: expected {CHARACTERS_ENOUGH} or more"
            );
            self.warn(given, "length", message);
        }
        let store = given.object("store");
        let store = store.map_or(CookieStore::Memory, |store| self.cookie_store(store));
        Some(Box::new(Cookie { store, ..cookie }))
    }

    fn cookie_store(&mut self, store: View<'_>) -> CookieStore {
        let (path, at) = match store.text("type") {
            Some("file") => {
                let path = store.text("filename").unwrap_or_default().to_owned();
                (path, store.span_of("filename"))
            }
            Some("database") => {
                let directory = store.text("path").unwrap_or_default();
                let path = format!("{}.cookies", directory.trim_end_matches('/'));
                let message = format!(
                    "the database is taken to be the file {}; who is known by the database logs in again",
                    quoted(&path)
                );
                self.problems.push(Problem::warning(store.span, message));
                (path, store.span_of("path"))
            }
            _ => return CookieStore::Memory,
        };
        if self.cookie_files.contains(&path) {
            let message = format!("another transport has the file {}", quoted(&path));
            self.problems.push(Problem::error(at, message));
        }
        self.cookie_files.push(path.clone());
        CookieStore::File(path)
    }
}
