//! Creates every kind of service from its configuration. A new kind is added here.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::archive::Archive;
use crate::bridge::Bridge;
use crate::cgi::Cgi;
use crate::console::Console;
use crate::files::Files;
use crate::fixed::{JsonValue, Redirect};
use crate::longpoll::LongPoll;
use crate::node_info::NodeInfo;
use crate::overview::Overview;
use crate::pages::Pages;
use crate::programs::Hosting;
use crate::python::Python;
use crate::request_counts::Requests;
use crate::reverse_proxy::ReverseProxy;
use crate::site::Site;
use crate::upgrades::no_upgrade;
use crate::websocket_proxy::WebSocketProxy;
use crate::{Answering, Asked, Service, answer, package, ready};
use crosstie_config::{FileSource, Web, WebFiles, WebService};
use crosstie_realms::realms::Realms;

/// The parts of a router that services need.
pub struct Grounds {
    pub realms: Arc<Realms>,
    /// For services that programs answer.
    pub hosting: Hosting,
    pub requests: Arc<Requests>,
    pub overview: Arc<Overview>,
}

/// Creates the services of a transport.
pub fn site(web: &Web, pages: Pages, grounds: &Grounds, directory: &Path) -> io::Result<Site> {
    Site::new(web, pages, &|service| make(service, grounds, directory))
}

fn make(service: &WebService, grounds: &Grounds, directory: &Path) -> io::Result<Box<dyn Service>> {
    Ok(match service {
        WebService::None => Box::new(Nothing),
        WebService::Files(files) => {
            let files = unpackaged(files, directory, &grounds.hosting)?;
            Box::new(Files::open(&files, directory)?)
        }
        WebService::Json(value) => Box::new(JsonValue::new(value)),
        WebService::LongPoll(options) => {
            Box::new(LongPoll::new(options, &grounds.realms, directory)?)
        }
        WebService::Console => Box::new(Console),
        WebService::NodeInfo => Box::new(NodeInfo::new(&grounds.overview)),
        WebService::Redirect { url } => Box::new(Redirect::new(url)?),
        WebService::Caller(model) => Box::new(Bridge::caller(model, grounds)),
        WebService::Publisher(model) => Box::new(Bridge::publisher(model, grounds)),
        WebService::Webhook(model) => Box::new(Bridge::webhook(model, grounds)),
        WebService::WebSocket(options) => Box::new(WebSocket {
            shows_status: options.options.shows_status,
        }),
        WebService::ReverseProxy(proxy) => Box::new(ReverseProxy::new(proxy, &grounds.requests)?),
        WebService::WebSocketReverseProxy(proxy) => {
            Box::new(WebSocketProxy::new(proxy, directory, &grounds.requests)?)
        }
        WebService::Archive(archive) => Box::new(Archive::open(
            archive,
            directory,
            grounds.realms.door.keeper(),
        )?),
        WebService::Cgi(cgi) => Box::new(Cgi::new(cgi, directory, &grounds.hosting)?),
        WebService::Python(python) => {
            let keeper = grounds.realms.door.keeper();
            Box::new(Python::new(python, directory, grounds, keeper)?)
        }
        // A configuration may contain secrets, and is not printed.
        _ => {
            return Err(io::Error::other(
                "a web service of this type is not known here",
            ));
        }
    })
}

/// Resolves a Python package to its directory.
fn unpackaged(model: &WebFiles, directory: &Path, hosting: &Hosting) -> io::Result<WebFiles> {
    let mut files = model.clone();
    if let FileSource::Package { package, resource } = &model.source {
        let folder = package::folder(package, resource, directory, hosting)?;
        files.source = FileSource::Directory(folder);
    }
    Ok(files)
}

/// A service that answers 404.
struct Nothing;

impl Service for Nothing {
    fn answer(&self, _: Asked) -> Answering<'_> {
        ready(answer::not_found())
    }
}

/// A WebSocket endpoint, opened by the listener itself; other requests get an explanation.
struct WebSocket {
    shows_status: bool,
}

impl Service for WebSocket {
    fn answer(&self, asked: Asked) -> Answering<'_> {
        ready(no_upgrade(&asked.request, self.shows_status))
    }
}
