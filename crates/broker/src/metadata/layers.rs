//! The configuration's entries, and the defaults that stand in for what it does not name.

use std::collections::BTreeSet;
use std::sync::Arc;

use crosstie_auth::PatternError;
use crosstie_config as model;
use crosstie_metadata::{Layers, Origin, Permission, User};

use crate::identity;

/// The layers of a configuration. `amqp` has the entries of its definitions too; `own` has not.
pub(crate) fn layers(own: &model::Amqp, amqp: &model::Amqp, node: &str) -> Result<Layers, String> {
    let mut layers = Layers::default();
    for user in &amqp.users {
        let is_own = own.users.iter().any(|known| known.name == user.name);
        let entry = User {
            password: user.password.clone(),
            tags: user.tags.clone(),
            is_remote_allowed: user.is_remote_allowed,
        };
        let origin = origin(user.is_default, is_own, "amqp.users");
        let name = Arc::from(user.name.as_str());
        layers.users.push((name, entry, origin));
    }
    for vhost in &amqp.vhosts {
        let name: Arc<str> = vhost.name.as_str().into();
        let of_own = own.vhosts.iter().find(|known| known.name == vhost.name);
        let origin_of_vhost = origin(false, of_own.is_some() || vhost.is_default, "amqp.vhosts");
        layers.vhosts.push((Arc::clone(&name), (), origin_of_vhost));
        if vhost.replicated.is_some() {
            layers.replicated.insert(Arc::clone(&name));
        }
        for permission in &vhost.permissions {
            let user = permission.user.as_str();
            let own = of_own.map_or(&[][..], |vhost| &vhost.permissions);
            let is_own = own.iter().any(|known| known.user == user);
            let origin = origin(vhost.is_default, is_own, "amqp.vhosts");
            let entry = compile(permission)
                .map_err(|e| format!("the permissions of user '{user}' in vhost '{name}': {e}"))?;
            let pair = (Arc::clone(&name), Arc::from(user));
            layers.permissions.push((pair, entry, origin));
        }
    }
    let cluster_name = identity::cluster_name(&amqp.identity).into();
    let origin = match amqp.identity.cluster_name {
        Some(_) => Origin::Configured("amqp.identity.cluster_name"),
        None => Origin::Default,
    };
    layers.global_parameters = vec![
        (identity::CLUSTER_NAME.into(), cluster_name, origin),
        (
            "internal_cluster_id".into(),
            format!("crosstie-cluster-id-{node}").into(),
            Origin::Default,
        ),
    ];
    Ok(layers)
}

/// Adds the vhosts that operators have created.
pub(crate) fn add_created(layers: &mut Layers, created: &BTreeSet<Arc<str>>) {
    let names = layers.vhosts.iter().map(|(name, ..)| Arc::clone(name));
    let names: BTreeSet<_> = names.collect();
    let created = created.iter().filter(|name| !names.contains(*name));
    let created = created.map(|name| (Arc::clone(name), (), Origin::RunTime));
    layers.vhosts.extend(created);
}

fn compile(permission: &model::AmqpPermission) -> Result<Permission, PatternError> {
    let model::AmqpPermission {
        configure,
        write,
        read,
        ..
    } = permission;
    Permission::new(configure, write, read)
}

fn origin(is_default: bool, is_own: bool, key: &'static str) -> Origin {
    match (is_default, is_own) {
        (true, _) => Origin::Default,
        (false, true) => Origin::Configured(key),
        (false, false) => Origin::Configured("amqp.definitions"),
    }
}
