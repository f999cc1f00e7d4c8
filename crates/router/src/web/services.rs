//! Every kind of service, made from its configuration. What starts to work gets its line here.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crosstie_config::{Web, WebService};
use hyper::StatusCode;
use hyper::header::{HeaderValue, UPGRADE};

use crate::listen::Http;
use crate::router_state::RouterState;
use crate::web::files::Files;
use crate::web::fixed::{JsonValue, Redirect};
use crate::web::longpoll::LongPoll;
use crate::web::node_info::NodeInfo;
use crate::web::site::Site;
use crate::web::{Answering, Asked, Service, answer, ready};

/// What answers the requests of a transport.
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
        WebService::Files(files) => Box::new(Files::open(files, directory)?),
        WebService::Json(value) => Box::new(JsonValue::new(value)),
        WebService::LongPoll(options) => Box::new(LongPoll::new(options, router, directory)?),
        WebService::NodeInfo => Box::new(NodeInfo),
        WebService::Redirect { url } => Box::new(Redirect::new(url)?),
        WebService::WebSocket(_) => Box::new(WebSocket),
        other => {
            let text = format!("service {other:?} is not known here");
            return Err(io::Error::other(text));
        }
    })
}

/// Nothing, said so.
struct Nothing;

impl Service for Nothing {
    fn answer(&self, _: Asked) -> Answering<'_> {
        ready(answer::not_found())
    }
}

/// Opened by the listener itself; whoever comes without asking for an upgrade is told so.
struct WebSocket;

impl Service for WebSocket {
    fn answer(&self, _: Asked) -> Answering<'_> {
        let text = "expected an upgrade to WebSocket";
        let mut response = answer::text(StatusCode::UPGRADE_REQUIRED, text);
        let websocket = HeaderValue::from_static("websocket");
        response.headers_mut().insert(UPGRADE, websocket);
        ready(response)
    }
}
