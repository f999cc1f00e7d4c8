//! Keys of cookies.

use super::form::{Kind, OFF, Rule, TYPE, Words, integer, one_of, tagged, text};
use super::table::tables;
use crate::model::CookieStore;

tables! {
    /// Cookie that a listener gives to browsers.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Cookie = pub(super) static COOKIE("websocket.cookie", "a cookie") {
        name: String = text(Rule::CookieName).or_text("cbtid"), "Name of the cookie. The console's default is `crosstie_console`.";
        length => characters: usize = integer(6, 64).or(24),
            "Length of the cookie's value, in characters of 6 bits each. The value is a credential: use at least 22 \
             characters (128 bits).";
        max_age => max_age_s: u64 = integer(1, 311_040_000).or(604_800),
            "Lifetime of the cookie from its creation, in seconds.";
        secure: bool = OFF, "Restricts the cookie to TLS connections (`Secure`).";
        http_strict => http_only: bool = OFF, "Hides the cookie from scripts (`HttpOnly`).";
        same_site: Option<String> = one_of(&SAME_SITE).otherwise("the browser decides"),
            "Policy for sending the cookie from pages of other sites (`SameSite`).";
        "store" = tagged(&STORE).otherwise("in memory"), "Storage of cookie logins.";
        cookies_max: usize = integer(1, 10_000_000).or(65_536).own(),
            "Maximum number of stored cookies. Another one evicts the oldest. Only cookies of logged-in sessions \
             are stored, at most 64 per principal.";
        let store: CookieStore = CookieStore::Memory;
    }

    words SAME_SITE("websocket.cookie.same_site") { "Strict", "Lax", "None" }

    tagged STORE("websocket.cookie.store.type", "a store of cookies") {
        "memory" => MEMORY, "file" => FILE, "database" => DATABASE
    }

    static MEMORY("websocket.cookie.store[memory]", "a store of cookies in memory") {
        ..TYPE;
    }

    static FILE("websocket.cookie.store[file]", "a store of cookies in a file") {
        ..TYPE;
        "filename" = text(Rule::Path).required(),
            "File of cookie logins, in Crossbar.io's line format; no two transports share a file. A relative path \
             starts at the node's directory.";
        "purge_on_startup" = Kind::Boolean.inert("what is deleted or expired is purged at every start");
    }

    static DATABASE("websocket.cookie.store[database]", "a store of cookies in a database") {
        ..TYPE;
        "path" = text(Rule::Path).required(),
            "Directory of the database. Cookies are stored in a file beside it, named after the directory with \
             `.cookies` appended. A relative path starts at the node's directory.";
        "purge_on_startup" = Kind::Boolean.inert("what is deleted or expired is purged at every start");
        "maxsize" = integer(0, i64::MAX).inert("`cookies_max` bounds the file");
        "sync" = Kind::Boolean.inert("the file is synced by a thread of its own");
        "readonly" = Kind::Always(false, "who logs in is written down").or_no(), "Opens the store for reading only.";
    }

    pub(super) static COOKIE_AUTH("auth.cookie", "authentication by cookie") {
        "type" = one_of(&Words { path: "", words: &["static"] }).or_text("static"),
            "Type of the object; may be left out.";
    }
}
