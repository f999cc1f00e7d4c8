//! The operators' listener: pages that tell of several routers.

use std::sync::Arc;

use crosstie_config as model;

use crate::binding;
use crate::error::{StartError, StartFault};
use crate::listen::Listening;
use crate::router::{Router, RouterOptions};
use crate::serve;
use crate::transports::Accepting;
use crate::urls;

/// A running operators' listener. It ends when it is stopped, and with the router whose threads
/// serve it.
pub struct Admin {
    listening: Arc<Listening>,
    accepting: Accepting,
}

/// Listens, on the threads of the first router; returns the URLs too.
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
    let state = Arc::clone(&first.state);
    let listening = Listening::of_pages(state, admin, directory).map_err(io)?;
    let listening = Arc::new(listening);
    let stall_max = first.state.limits.stall_max;
    let bind = || binding::bind(&admin.endpoint, true, None, directory, stall_max);
    let listener = first.workers.enter_first(bind).map_err(io)?;
    let urls = urls::of_pages(&admin.endpoint, &listener, directory);
    let workers = Arc::clone(&first.workers);
    let mut pages = first.pages.lock();
    pages.retain(|page| page.strong_count() > 0);
    pages.push(Arc::downgrade(&listening));
    drop(pages);
    let serving = serve::serve_all(Arc::clone(&listening), listener, workers);
    let accepting = Accepting::start(&first.workers, serving);
    let admin = Admin {
        listening,
        accepting,
    };
    admin.show(routers);
    Ok((admin, urls))
}

impl Admin {
    /// Has the pages tell of these routers from now on.
    pub fn show(&self, routers: &[&Router]) {
        let states = routers.iter().map(|router| Arc::clone(&router.state));
        *self.listening.routers.lock() = states.collect();
    }

    /// Closes the listener; a page that is being served is cut off.
    pub fn stop(self) {
        self.listening.stop();
        self.accepting.stop();
        let Listening { router, number, .. } = &*self.listening;
        router.watch.close_all(*number);
    }
}
