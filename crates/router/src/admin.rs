//! The operators' listener: pages about several routers.

use std::io;
use std::sync::{Arc, Weak};

use crosstie_config as model;
use crosstie_front::certificate::Certificate;
use crosstie_front::listen::{Listening, Terms};
use crosstie_front::serve::{self, Destination};
use crosstie_front::sockets;
use crosstie_realms::entrance::Entrance;
use crosstie_site::pages::Pages;
use crosstie_site::site::Site;
use crosstie_transport::Listener;
use crosstie_transport::passed::Passed;

use crate::accepting::Accepting;
use crate::error::{StartError, StartFault};
use crate::router::{Router, RouterOptions};
use crate::status_page::Told;
use crate::urls;

/// The name of its socket.
const NAME: &str = "admin";

/// A running operators' listener. It ends when it is stopped, or with the router whose threads serve it.
pub struct Admin {
    listening: Arc<Listening>,
    told: Arc<Told>,
    accepting: Accepting,
    socket: Weak<Listener>,
    /// Its files are checked for as long as this lives.
    _certificate: Option<Arc<Certificate>>,
}

/// Listens, on the threads of the first router. Also returns the URLs.
pub fn start_admin(
    admin: &model::Admin,
    routers: &[&Router],
    options: &RouterOptions,
) -> Result<(Admin, Vec<String>), StartError> {
    let directory = &options.directory;
    let failed = |fault| StartError {
        what: "the admin listener".to_owned(),
        fault,
    };
    let Some(first) = routers.first() else {
        return Err(failed(StartFault::NoSuch("router to tell of".to_owned())));
    };
    let io = |e| failed(StartFault::Io(e));
    let state = &first.state;
    let certificate = state.open_certificate("admin", &admin.endpoint, directory, &[]);
    let certificate = certificate.map_err(io)?;
    let terms = Terms {
        handshake_timeout: state.bounds.handshake_timeout,
        tls: certificate.as_ref().map(|own| own.presented()),
        proxies: admin.endpoint.proxy_protocol().cloned(),
        limits: Arc::clone(&state.bounds.limits),
        connections_max: None,
        connections_per_second_max: None,
        earlier: Vec::new(),
    };
    let listening = Listening::new(&state.bounds, &state.watch, terms);
    let told = Told::new(state, Vec::new());
    let figures = Arc::clone(&told);
    let pages = Pages::new(&admin.pages, figures, state.page_connections_max);
    let site = Arc::new(Site::of_pages(pages));
    let kept = Arc::clone(&listening);
    let entrance = Entrance::of_http(&state.realms, kept, &admin.allowed_hosts, site);
    let stall_max = state.bounds.limits.stall_max;
    let bind = || sockets::bind(NAME, &admin.endpoint, true, None, directory, stall_max);
    let listener = Arc::new(first.workers.enter_first(bind).map_err(io)?);
    let urls = urls::of_pages(&admin.endpoint, &listener, directory);
    let workers = Arc::clone(&first.workers);
    let mut pages = first.pages.lock();
    pages.retain(|page| page.strong_count() > 0);
    pages.push(Arc::downgrade(&listening));
    drop(pages);
    let destination = Destination::new(Arc::clone(&listening), Arc::new(entrance));
    let socket = Arc::downgrade(&listener);
    let serving = serve::serve_all(destination, listener, workers);
    let accepting = Accepting::start(&first.workers, serving);
    let admin = Admin {
        listening,
        told,
        accepting,
        socket,
        _certificate: certificate,
    };
    admin.show(routers);
    Ok((admin, urls))
}

impl Admin {
    /// Replaces the routers that the pages show.
    pub fn show(&self, routers: &[&Router]) {
        let states = routers.iter().map(|router| Arc::clone(&router.state));
        self.told.show(states.collect());
    }

    /// A second descriptor of its socket.
    pub fn socket(&self) -> io::Result<Option<Passed>> {
        let open = self.socket.upgrade();
        open.map(|listener| {
            Ok(Passed {
                name: NAME.to_owned(),
                fd: listener.duplicate()?,
            })
        })
        .transpose()
    }

    /// Closes the listener; pages in transit are cut off.
    pub fn stop(self) {
        self.listening.stop();
        self.accepting.stop();
        self.listening.watch.close_all(self.listening.number);
    }
}
