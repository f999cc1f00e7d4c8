//! The listing page of a directory.

use std::fmt::Write as _;

use hyper::{Response, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::answer::{Body, escaped, typed};

/// Characters beside letters and digits that need no escape in a link.
const NAME: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

pub(super) fn page(path: &str, names: &[String]) -> Response<Body> {
    let mut rows = String::new();
    for name in names {
        // A name with a colon would be read as an absolute address.
        let link = utf8_percent_encode(name, NAME);
        // Writing to a string cannot fail.
        let _ = write!(rows, "<li><a href=\"./{link}\">{}</a>", escaped(name));
    }
    let title = escaped(path);
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>\
         <meta name=color-scheme content=\"light dark\"><h1>{title}</h1><ul>{rows}</ul></html>\n"
    );
    typed(StatusCode::OK, "text/html; charset=utf-8", page)
}
