//! Creates every kind of service from its configuration. A new kind is added here.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::listen::Http;
use crate::programs::Hosting;
use crate::router_state::RouterState;
use crate::web::archive::Archive;
use crate::web::bridge::Bridge;
use crate::web::cgi::Cgi;
use crate::web::files::Files;
use crate::web::fixed::{JsonValue, Redirect};
use crate::web::longpoll::LongPoll;
use crate::web::node_info::NodeInfo;
use crate::web::python::Python;
use crate::web::reverse_proxy::ReverseProxy;
use crate::web::site::Site;
use crate::web::upgrades::no_upgrade;
use crate::web::websocket_proxy::WebSocketProxy;
use crate::web::{Answering, Asked, Service, answer, package, ready};
use crosstie_config::{FileSource, Web, WebFiles, WebService};

/// Creates the services of a transport.
pub(crate) fn site(
    web: &Web,
    router: &Arc<RouterState>,
    directory: &Path,
) -> io::Result<Arc<dyn Http>> {
    let site = Site::new(web, &|service| make(service, router, directory))?;
    Ok(Arc::new(site))
}

fn make(
    service: &WebService,
    router: &Arc<RouterState>,
    directory: &Path,
) -> io::Result<Box<dyn Service>> {
    Ok(match service {
        WebService::None => Box::new(Nothing),
        WebService::Files(files) => {
            let files = unpackaged(files, directory, &router.hosting)?;
            Box::new(Files::open(&files, directory)?)
        }
        WebService::Json(value) => Box::new(JsonValue::new(value)),
        WebService::LongPoll(options) => Box::new(LongPoll::new(options, router, directory)?),
        WebService::NodeInfo => Box::new(NodeInfo),
        WebService::Redirect { url } => Box::new(Redirect::new(url)?),
        WebService::Caller(model) => Box::new(Bridge::caller(model, router)),
        WebService::Publisher(model) => Box::new(Bridge::publisher(model, router)),
        WebService::Webhook(model) => Box::new(Bridge::webhook(model, router)),
        WebService::WebSocket(options) => Box::new(WebSocket {
            shows_status: options.options.shows_status,
        }),
        WebService::ReverseProxy(proxy) => Box::new(ReverseProxy::new(proxy, router)?),
        WebService::WebSocketReverseProxy(proxy) => {
            Box::new(WebSocketProxy::new(proxy, directory, router)?)
        }
        WebService::Archive(archive) => {
            Box::new(Archive::open(archive, directory, router.door.keeper())?)
        }
        WebService::Cgi(cgi) => Box::new(Cgi::new(cgi, directory, &router.hosting)?),
        WebService::Python(python) => {
            let keeper = router.door.keeper();
            Box::new(Python::new(python, directory, router, keeper)?)
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
