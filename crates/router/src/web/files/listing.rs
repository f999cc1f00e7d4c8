//! The page of a directory's names.

use std::fmt::Write as _;

use hyper::{Response, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::web::answer::{Body, escaped, typed};

/// What a name on a page need not escape, beside letters and digits.
const NAME: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

pub(super) fn page(path: &str, names: &[String]) -> Response<Body> {
    let mut rows = String::new();
    for name in names {
        // A name with a colon in it would be an address.
        let link = utf8_percent_encode(name, NAME);
        // A string takes everything.
        let _ = write!(rows, "<li><a href=\"./{link}\">{}</a>", escaped(name));
    }
    let title = escaped(path);
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>\
         <meta name=color-scheme content=\"light dark\"><h1>{title}</h1><ul>{rows}</ul></html>\n"
    );
    typed(StatusCode::OK, "text/html; charset=utf-8", page)
}
