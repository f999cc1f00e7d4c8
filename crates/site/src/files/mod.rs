//! Files below a directory.

mod compressed;
mod directory;
mod index;
mod kept;

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use crosstie_config::{FileSource, WebFiles};
use crosstie_web::coding;
use crosstie_web::condition::{Condition, Validators};
use crosstie_web::range::{self, Range};
use hyper::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_ENCODING,
    CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, EXPIRES, HeaderMap, HeaderName, HeaderValue,
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED,
    LOCATION, RANGE, VARY,
};
use hyper::{Method, Response, StatusCode};

use crate::answer::{self, Body};
use crate::content::{self, Part};
use crate::media_type::media_type;
use crate::{Answering, Asked, Service, ready};
use compressed::Compressed;
use directory::{Directory, Found, OpenFile};
use kept::{Kept, KeptFile};

/// A service of files.
pub(crate) struct Files {
    directory: Directory,
    lists_directories: bool,
    mime_types: Vec<(String, String)>,
    cache_timeout: Option<Duration>,
    default_file: Option<String>,
    /// Present if texts are compressed.
    compressed: Option<Compressed>,
    kept: Kept,
}

/// The bytes of a file that was found.
enum Source {
    Kept(Arc<KeptFile>),
    Open(OpenFile),
}

/// The file shown for a directory, if it exists.
const INDEX: &str = "index.html";

impl Files {
    pub(super) fn open(model: &WebFiles, node_directory: &Path) -> io::Result<Self> {
        let FileSource::Directory(path) = &model.source else {
            return Err(io::Error::other(
                "files of a Python package are not supported here",
            ));
        };
        Ok(Self {
            directory: Directory::open(node_directory.join(path))?,
            lists_directories: model.lists_directories,
            mime_types: model.mime_types.clone(),
            cache_timeout: model.cache_timeout,
            default_file: model.default_file.clone(),
            compressed: model.compresses.then(Compressed::default),
            kept: Kept::default(),
        })
    }

    fn found(&self, asked: &Asked) -> io::Result<Response<Body>> {
        let is_slashed = asked.rest.last().is_none_or(String::is_empty);
        let path = asked.rest.join("/");
        let path = path.strip_suffix('/').unwrap_or(&path);
        if !is_slashed && let Some(kept) = self.kept.find(&self.directory, path) {
            return self.file(asked, Source::Kept(kept), path);
        }
        match self.directory.find(path)? {
            Found::File(file) if !is_slashed => self.opened(asked, file, path),
            Found::Directory if !is_slashed || is_bare(asked) => Ok(slashed(asked)),
            Found::Directory => {
                let index = match path {
                    "" => INDEX.to_owned(),
                    path => format!("{path}/{INDEX}"),
                };
                match self.directory.find(&index)? {
                    Found::File(file) => self.opened(asked, file, &index),
                    _ if self.lists_directories => {
                        let names = self.directory.list(path)?;
                        Ok(index::page(asked.request.uri().path(), &names))
                    }
                    _ => self.missing(asked),
                }
            }
            Found::File(_) | Found::Nothing => self.missing(asked),
        }
    }

    /// The answer for a missing file.
    fn missing(&self, asked: &Asked) -> io::Result<Response<Body>> {
        let Some(default) = &self.default_file else {
            return Ok(answer::not_found());
        };
        match self.directory.find(default)? {
            Found::File(file) => self.opened(asked, file, default),
            _ => Ok(answer::not_found()),
        }
    }

    fn opened(&self, asked: &Asked, file: OpenFile, path: &str) -> io::Result<Response<Body>> {
        let describe = |validators: &Validators| self.describe(validators, path);
        let source = match self.kept.renew(path, &file, SystemTime::now(), describe)? {
            Some(kept) => Source::Kept(kept),
            None => Source::Open(file),
        };
        self.file(asked, source, path)
    }

    fn file(&self, asked: &Asked, source: Source, path: &str) -> io::Result<Response<Body>> {
        let request = asked.request.headers();
        let mut response = Response::new(answer::full(""));
        let (mut validators, file_length) = match &source {
            Source::Kept(kept) => {
                *response.headers_mut() = kept.headers.clone();
                (Cow::Borrowed(&kept.validators), kept.bytes.len() as u64)
            }
            Source::Open(file) => {
                let length = file.state.length;
                let validators = Validators::new(file.state.modified(), length);
                *response.headers_mut() = self.describe(&validators, path);
                (Cow::Owned(validators), length)
            }
        };
        self.limit_age(response.headers_mut());
        let encoded = self.encoded(request, &source, file_length, &validators, path)?;
        if encoded.is_some() {
            let coded = validators.encoded("gzip");
            let headers = response.headers_mut();
            insert(headers, CONTENT_ENCODING, "gzip".to_owned());
            insert(headers, ETAG, coded.tag().to_owned());
            validators = Cow::Owned(coded);
        }
        let condition = condition(request).judge(&validators);
        if let Some(status) = condition {
            *response.status_mut() =
                StatusCode::from_u16(status).unwrap_or(StatusCode::NOT_MODIFIED);
            return Ok(response);
        }
        if let Some(encoded) = encoded {
            match asked.request.method() == Method::HEAD {
                true => {
                    let length = encoded.len().to_string();
                    insert(response.headers_mut(), CONTENT_LENGTH, length);
                }
                false => *response.body_mut() = answer::full(encoded),
            }
            return Ok(response);
        }
        whole_or_part(asked, &source, file_length, &validators, response)
    }

    /// The compressed file, if the client accepts gzip and requests the whole file.
    fn encoded(
        &self,
        request: &HeaderMap,
        source: &Source,
        file_length: u64,
        validators: &Validators,
        path: &str,
    ) -> io::Result<Option<Bytes>> {
        let Some(compressed) = &self.compressed else {
            return Ok(None);
        };
        let takes = text(request, ACCEPT_ENCODING).is_some_and(coding::takes_gzip);
        let is_whole = !request.contains_key(RANGE);
        let name = last_name(path);
        let is_text = coding::is_compressible(&media_type(&self.mime_types, name));
        if !(takes && is_whole && is_text && compressed::is_worth_it(file_length)) {
            return Ok(None);
        }
        let tag = validators.tag();
        match source {
            Source::Kept(kept) => compressed.of(path, tag, &kept.bytes[..], file_length),
            Source::Open(file) => compressed.of(path, tag, &*file.file, file_length),
        }
    }

    /// The headers of a file, whether it is sent or not.
    fn describe(&self, validators: &Validators, path: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let kind = media_type(&self.mime_types, last_name(path));
        insert(&mut headers, CONTENT_TYPE, kind);
        insert(&mut headers, ETAG, validators.tag().to_owned());
        insert(&mut headers, LAST_MODIFIED, validators.modified_text());
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        // Files do not depend on the client, so that pages of any origin may read them.
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        if self.compressed.is_some() {
            headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        }
        if let Some(age) = self.cache_timeout {
            let text = format!("max-age={}, public", age.as_secs());
            insert(&mut headers, CACHE_CONTROL, text);
        }
        headers
    }

    /// The header of a file that depends on the time.
    fn limit_age(&self, headers: &mut HeaderMap) {
        let at = self
            .cache_timeout
            .map(|age| SystemTime::now().checked_add(age));
        if let Some(Some(at)) = at {
            insert(headers, EXPIRES, httpdate::fmt_http_date(at));
        }
    }
}

impl Service for Files {
    fn answer(&self, asked: Asked) -> Answering<'_> {
        if let Some(refused) = asked.refused_method() {
            return ready(refused);
        }
        let found = self.found(&asked);
        ready(found.unwrap_or_else(|e| failed(&asked.request.uri().to_string(), &e)))
    }
}

/// Completes the answer for a file, or for the part of it that is requested.
fn whole_or_part(
    asked: &Asked,
    source: &Source,
    file_length: u64,
    validators: &Validators,
    mut response: Response<Body>,
) -> io::Result<Response<Body>> {
    let request = asked.request.headers();
    let asked_for = text(request, RANGE)
        .filter(|_| text(request, IF_RANGE).is_none_or(|text| validators.are_those_of(text)));
    let range = asked_for.map_or(Range::All, |text| range::parse(text, file_length));
    let (first, length) = match range {
        Range::All => (0, file_length),
        Range::Part { first, length } => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            let last = first + length - 1;
            let part = format!("bytes {first}-{last}/{file_length}");
            insert(response.headers_mut(), CONTENT_RANGE, part);
            (first, length)
        }
        Range::Unsatisfiable => {
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            let whole = format!("bytes */{file_length}");
            insert(response.headers_mut(), CONTENT_RANGE, whole);
            return Ok(response);
        }
    };
    if *asked.request.method() == Method::HEAD {
        insert(response.headers_mut(), CONTENT_LENGTH, length.to_string());
    } else {
        *response.body_mut() = match source {
            Source::Kept(kept) => {
                // A part lies within the file.
                let (first, length) = (first as usize, length as usize);
                answer::full(kept.bytes.slice(first..first + length))
            }
            Source::Open(file) => {
                let part = Part::new(Arc::clone(&file.file), first, length);
                content::body(&asked.connection, part, length)?
            }
        };
    }
    Ok(response)
}

/// Whether the request is for the service's own path without a trailing slash, which relative names need.
fn is_bare(asked: &Asked) -> bool {
    asked.rest.is_empty() && !asked.base.is_empty()
}

/// Redirects to the same path with a slash, since names on a directory's page are relative to it. Only the last name is
/// sent, so that the redirection cannot lead elsewhere.
fn slashed(asked: &Asked) -> Response<Body> {
    let path = asked.request.uri().path();
    let name = path.rsplit('/').next().unwrap_or_default();
    let mut location = format!("./{name}/");
    if let Some(query) = asked.request.uri().query() {
        location = format!("{location}?{query}");
    }
    let mut response = Response::new(answer::full(""));
    *response.status_mut() = StatusCode::FOUND;
    insert(response.headers_mut(), LOCATION, location);
    response
}

fn last_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn condition(headers: &HeaderMap) -> Condition<'_> {
    Condition {
        matches: text(headers, IF_MATCH),
        unmodified_since: text(headers, IF_UNMODIFIED_SINCE),
        none_matches: text(headers, IF_NONE_MATCH),
        modified_since: text(headers, IF_MODIFIED_SINCE),
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Sets a header with a configurable value; a value that HTTP cannot express is left out.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

/// The client does not learn why the system refused; the log does.
fn failed(path: &str, e: &io::Error) -> Response<Body> {
    match e.kind() {
        io::ErrorKind::PermissionDenied => answer::page(
            StatusCode::FORBIDDEN,
            "403 Forbidden",
            "This may not be read.",
        ),
        io::ErrorKind::InvalidFilename => answer::not_found(),
        _ => {
            tracing::warn!("cannot serve {path:?}: {e}");
            let text = "The content at this address could not be read.";
            answer::page(StatusCode::INTERNAL_SERVER_ERROR, "500 Error", text)
        }
    }
}
