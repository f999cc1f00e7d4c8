//! Parts of a configuration that a reload changes in a running node. Everything else must be equal: the effects that the
//! keys state promise that, and this check holds it.

use crosstie_config::{Amqp, AmqpLimits, Config, Realm, RouterWorker, Worker};

/// Whether the running configuration `old` can become `new` without a restart; an error names the part that cannot. A
/// broker without transports goes on.
pub(super) fn check(old: &Config, new: &mut Config) -> Result<(), String> {
    if (&old.limits, &old.admin, &old.audit_log, &old.controller.id)
        != (&new.limits, &new.admin, &new.audit_log, &new.controller.id)
    {
        return Err("the node's own part of the configuration needs a restart".to_owned());
    }
    for newer in &mut new.workers {
        let Some(older) = old.workers.iter().find(|older| older.id() == newer.id()) else {
            continue;
        };
        let id = newer.id().to_owned();
        match (older, newer) {
            (Worker::Router(older), Worker::Router(newer)) => {
                if newer.amqp.is_none() {
                    newer.amqp.clone_from(&older.amqp);
                }
                check_router(older, newer)
                    .map_err(|what| format!("{what} of worker '{id}' needs a restart"))?;
            }
            (older, newer) if older.type_name() != newer.type_name() => {
                return Err(format!(
                    "the type of worker '{id}' needs a restart, or the worker another id"
                ));
            }
            (Worker::Container(_) | Worker::Guest(_), _) => {}
            (older, newer) if older == newer => {}
            (older, _) => {
                let kind = older.type_name();
                return Err(format!(
                    "the change of worker '{id}' of type '{kind}' needs a restart"
                ));
            }
        }
    }
    Ok(())
}

fn check_router(old: &RouterWorker, new: &RouterWorker) -> Result<(), String> {
    if let (Some(older), Some(newer)) = (&old.amqp, &new.amqp) {
        let (older, newer) = (broker(older), broker(newer));
        if older.vhosts != newer.vhosts {
            return Err("a replicated vhost".to_owned());
        }
        if older != newer {
            return Err("the AMQP broker".to_owned());
        }
    }
    if old.components != new.components || old.bridges != new.bridges {
        return Err("a component, or an authenticator that is a function,".to_owned());
    }
    for newer in &new.realms {
        let older = old.realms.iter().find(|older| older.name == newer.name);
        if older.is_some_and(|older| rest(older) != rest(newer)) {
            return Err(format!("a part of realm '{}'", newer.name));
        }
    }
    let options = |worker: &RouterWorker| RouterWorker {
        realms: Vec::new(),
        transports: Vec::new(),
        joints: Vec::new(),
        amqp: None,
        components: Vec::new(),
        bridges: Vec::new(),
        ..worker.clone()
    };
    match options(old) == options(new) {
        true => Ok(()),
        false => Err("an option".to_owned()),
    }
}

/// The broker without its users, backends and permissions, its own vhosts, and limits that apply at once.
fn broker(amqp: &Amqp) -> Amqp {
    let mut rest = amqp.clone();
    rest.users.clear();
    rest.auth_backends.clear();
    rest.limits = AmqpLimits {
        consumer_timeout: amqp.limits.consumer_timeout,
        incomplete_timeout: amqp.limits.incomplete_timeout,
        login_delay_max: amqp.limits.login_delay_max,
        ..Amqp::default().limits
    };
    rest.vhosts.retain(|vhost| vhost.replicated.is_some());
    rest.vhosts
        .iter_mut()
        .for_each(|vhost| vhost.permissions.clear());
    rest
}

/// The realm without its roles and links.
fn rest(realm: &Realm) -> Realm {
    Realm {
        roles: Vec::new(),
        rlinks: Vec::new(),
        ..realm.clone()
    }
}
