//! Serves the members of a zip file.
//!
//! The file may come from an untrusted source: a member that is longer than it claims ends only its own answer, and
//! names that leave the archive are not served.

mod checked;
mod members;
mod origin;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use crosstie_config::WebArchive;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use hyper::{Method, Response, StatusCode};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use self::checked::Checked;
use self::members::{Member, Members};
use super::answer::{self, Body};
use super::content;
use super::media_type::media_type;
use super::{Answering, Asked, Service, ready};

/// A service of an archive.
pub(crate) struct Archive {
    file: Arc<File>,
    members: Members,
    mime_types: Vec<(String, String)>,
    default_object: Option<String>,
    object_prefix: Option<String>,
    default_file: Option<String>,
    cache: Option<Mutex<Cache>>,
}

/// Recently requested members, while memory allows.
struct Cache {
    kept: HashMap<usize, Bytes>,
    room: usize,
}

impl Archive {
    pub(crate) fn open(model: &WebArchive, directory: &Path, keeper: &Handle) -> io::Result<Self> {
        let path = directory.join(&model.archive);
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
        if !path.exists() {
            origin::fetch(model, &path, keeper).map_err(named)?;
        }
        let file = Arc::new(File::open(&path).map_err(named)?);
        if !model.hashes.is_empty() {
            origin::check(&file, &model.hashes).map_err(named)?;
        }
        let members = Members::read(&file, model.member_bytes_max).map_err(named)?;
        tracing::info!("{}: {} members are served", path.display(), members.len());
        Ok(Self {
            file,
            members,
            mime_types: model.mime_types.clone(),
            default_object: model.default_object.clone(),
            object_prefix: model.object_prefix.clone(),
            default_file: model.default_file.clone(),
            cache: model.cache.then(|| {
                Mutex::new(Cache {
                    kept: HashMap::new(),
                    room: model.cache_bytes_max,
                })
            }),
        })
    }

    fn respond(&self, asked: &Asked) -> Response<Body> {
        if let Some(refused) = asked.refused_method() {
            return refused;
        }
        let mut name = asked.rest.join("/");
        if let Some(default) = &self.default_object
            && (name.is_empty() || name.ends_with('/'))
        {
            name.push_str(default);
        }
        let default = self.default_file.as_deref();
        let names = [Some(name.as_str()), default].into_iter().flatten();
        let found = names
            .filter_map(|name| {
                let name = self.within(name);
                Some((self.members.find(&name)?, name))
            })
            .next();
        let Some((member, name)) = found else {
            return answer::not_found();
        };
        self.member(asked, member, &name)
    }

    /// The member's name with the configured prefix.
    fn within(&self, name: &str) -> String {
        match &self.object_prefix {
            Some(prefix) => format!("{}/{name}", prefix.trim_end_matches('/')),
            None => name.to_owned(),
        }
    }

    fn member(&self, asked: &Asked, member: &Member, name: &str) -> Response<Body> {
        let tag = format!("\"{:08x}-{:x}\"", member.checksum, member.bytes);
        let mut response = Response::new(answer::full(""));
        let is_known = has_tag(asked.request.headers(), &tag);
        let headers = response.headers_mut();
        if let Ok(tag) = HeaderValue::try_from(tag) {
            headers.insert(ETAG, tag);
        }
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        if let Ok(kind) = HeaderValue::try_from(media_type(&self.mime_types, name)) {
            headers.insert(CONTENT_TYPE, kind);
        }
        headers.insert(CONTENT_LENGTH, member.bytes.into());
        if asked.request.method() == Method::HEAD {
            return response;
        }
        match self.body(asked, member) {
            Ok(body) => *response.body_mut() = body,
            Err(e) => {
                tracing::warn!("member {name:?} of an archive is broken: {e}");
                let text = "The content at this address could not be read.";
                return answer::page(StatusCode::INTERNAL_SERVER_ERROR, "500 Error", text);
            }
        }
        response
    }

    /// A member's bytes. A short or cached one is read at once; another ends early if its checksum does not match.
    fn body(&self, asked: &Asked, member: &Member) -> io::Result<Body> {
        let bytes = Checked::new(Arc::clone(&self.file), member);
        let Some(cache) = &self.cache else {
            return content::body(&asked.connection, bytes, member.bytes);
        };
        let room = {
            let cache = cache.lock();
            if let Some(kept) = cache.kept.get(&member.index) {
                return Ok(answer::full(kept.clone()));
            }
            cache.room as u64
        };
        if member.bytes > room {
            return content::body(&asked.connection, bytes, member.bytes);
        }
        let whole = content::whole(bytes, member.bytes)?;
        let mut cache = cache.lock();
        if whole.len() <= cache.room && cache.kept.insert(member.index, whole.clone()).is_none() {
            cache.room -= whole.len();
        }
        Ok(answer::full(whole))
    }
}

impl Service for Archive {
    fn answer(&self, asked: Asked) -> Answering<'_> {
        ready(self.respond(&asked))
    }
}

/// Whether the client has the current version.
fn has_tag(headers: &HeaderMap, tag: &str) -> bool {
    let values = headers.get_all(IF_NONE_MATCH).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|one| one.trim().trim_start_matches("W/"))
        .any(|one| one == tag || one == "*")
}
