//! The router of the management realm.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crosstie_config::{Config, Realm, Role, RouterWorker};
use crosstie_router::{Audit, Router, RouterOptions};
use serde_json::json;

use super::roles;
use crate::workers::no_process;
use crate::workers::router::private_transport;

/// Crossbar.io's name.
pub(super) const NAME: &str = "crossbar";

/// The role of every session: only programs of the node's own user can open the socket.
const ROLE: &str = "trusted";

/// Starts the router, listening at `socket`. Rejected logins at the console are in `audit`.
pub(super) fn start(
    node: &str,
    socket: &Path,
    audit: Option<Arc<Audit>>,
) -> Result<Router, String> {
    let worker = RouterWorker {
        id: NAME.to_owned(),
        threads: Some(1),
        spin_budget: 0,
        busy_poll: false,
        cpu_affinity: Vec::new(),
        realms: Vec::new(),
        transports: Vec::new(),
        amqp: None,
        joints: Vec::new(),
        components: Vec::new(),
        bridges: Vec::new(),
        says_goodbye: false,
        needs_components: false,
        process: no_process(),
    };
    let options = RouterOptions {
        node: node.to_owned(),
        is_private: true,
        directory: PathBuf::from("/"),
        busy_poll: Duration::ZERO,
        accepts_loss: false,
        overview: Arc::default(),
        audit,
        key: None,
        programs: None,
    };
    let limits = Config::embedded_default().limits;
    let started = || {
        let router = Router::start(&worker, &limits, &options)?;
        router.start_realm(&realm())?;
        Ok(router)
    };
    let router = started().map_err(|error: crosstie_router::StartError| error.to_string())?;
    let transport = private_transport("management", socket, ROLE)?;
    router
        .start_private_transport(&transport)
        .map_err(|error| error.to_string())?;
    Ok(router)
}

fn realm() -> Realm {
    let definition = json!({"name": NAME, "roles": []});
    // The check accepts this definition, as a test ensures.
    let realm = crosstie_config::realm_from_json(&definition);
    let mut realm = realm.unwrap_or_else(|problems| panic!("{problems}"));
    realm.roles.push(Role::everything(ROLE));
    realm.roles.extend(roles::console());
    realm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_accepted() {
        assert_eq!(realm().name, NAME);
    }
}
