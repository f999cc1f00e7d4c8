//! Entries as the HTTP API shows them, key by key in RabbitMQ's order.

use std::sync::Arc;

use crosstie_auth::PasswordHash;
use crosstie_queues::policy::PolicyKind;
use serde_json::{Map, Value as Json, json};

use crate::Metadata;
use crate::limits::Limits;
use crate::policies;
use crate::user::User;

impl Metadata {
    /// All users, or the one of that name.
    pub fn list_users(&self, name: Option<&str>) -> Vec<Json> {
        let users = self.users.iter();
        let users = users.filter(|(known, _)| name.is_none_or(|name| ***known == *name));
        users
            .map(|(name, user)| self.user_json(name, user))
            .collect()
    }

    /// Permissions of a vhost, a user, both, or all.
    pub fn list_permissions(&self, vhost: Option<&str>, user: Option<&str>) -> Vec<Json> {
        let permissions = self.permissions.iter();
        let permissions = permissions.filter(|((v, u), _)| is_of(v, vhost) && is_of(u, user));
        permissions
            .map(|((vhost, user), permission)| {
                json!({
                    "user": **user,
                    "vhost": **vhost,
                    "configure": permission.configure,
                    "write": permission.write,
                    "read": permission.read,
                })
            })
            .collect()
    }

    /// Topic permissions of a vhost, a user, both, or all.
    pub fn list_topic_permissions(&self, vhost: Option<&str>, user: Option<&str>) -> Vec<Json> {
        let permissions = self.topic_permissions.iter();
        let permissions = permissions.filter(|((v, u, _), _)| is_of(v, vhost) && is_of(u, user));
        permissions
            .map(|((vhost, user, exchange), permission)| {
                json!({
                    "user": **user,
                    "vhost": **vhost,
                    "exchange": **exchange,
                    "write": permission.write,
                    "read": permission.read,
                })
            })
            .collect()
    }

    /// Limits of a vhost, or of all.
    pub fn list_vhost_limits(&self, vhost: Option<&str>) -> Vec<Json> {
        let limits = self.vhost_limits.iter();
        let limits = limits.filter(|(known, _)| is_of(known, vhost));
        limits
            .map(|(vhost, limits)| json!({"vhost": **vhost, "value": limits.to_json()}))
            .collect()
    }

    /// Limits of a user, or of all.
    pub fn list_user_limits(&self, user: Option<&str>) -> Vec<Json> {
        let limits = self.user_limits.iter();
        let limits = limits.filter(|(known, _)| is_of(known, user));
        limits
            .map(|(user, limits)| json!({"user": **user, "value": limits.to_json()}))
            .collect()
    }

    /// All global parameters, or the one of that name.
    pub fn list_global_parameters(&self, name: Option<&str>) -> Vec<Json> {
        let parameters = self.global_parameters.iter();
        let parameters = parameters.filter(|(known, _)| is_of(known, name));
        parameters
            .map(|(name, value)| json!({"name": **name, "value": value}))
            .collect()
    }

    /// Policies of a vhost, or of all.
    pub fn list_policies(&self, kind: PolicyKind, vhost: Option<&str>) -> Vec<Json> {
        let policies = self.policies_of(kind).iter();
        let policies = policies.filter(|((of, _), _)| is_of(of, vhost));
        policies
            .map(|((vhost, name), policy)| {
                let mut row = Map::new();
                row.insert("vhost".to_owned(), (**vhost).into());
                row.insert("name".to_owned(), (**name).into());
                row.extend(policies::to_json(policy));
                Json::Object(row)
            })
            .collect()
    }

    /// Parameters of vhosts: operator policies and limits.
    pub fn list_parameters(&self, component: Option<&str>, vhost: Option<&str>) -> Vec<Json> {
        let parameter = |component: &str, vhost: &str, name: &str, value: Json| json!({"value": value, "vhost": vhost, "component": component, "name": name});
        let policies = self.operator_policies.iter();
        let policies = policies.map(|((vhost, name), policy)| {
            let value = policies::to_json(policy);
            ("operator_policy", vhost, &**name, Json::Object(value))
        });
        let limits = self.vhost_limits.iter();
        let limits =
            limits.map(|(vhost, limits)| ("vhost-limits", vhost, "limits", limits.to_json()));
        let all = policies.chain(limits);
        let wanted =
            all.filter(|(of, in_vhost, ..)| is_of(of, component) && is_of(in_vhost, vhost));
        wanted
            .map(|(component, vhost, name, value)| parameter(component, vhost, name, value))
            .collect()
    }

    /// The state of a vhost at run time: the keys that do not depend on its traffic.
    pub fn vhost_json(&self, name: &str, is_traced: bool) -> Json {
        let about = self.about(name);
        let kind = about.default_queue_type.as_deref().unwrap_or("undefined");
        json!({
            "name": name,
            "description": about.description,
            "tags": about.tags,
            "default_queue_type": kind,
            "metadata": {"description": about.description, "tags": about.tags},
            "tracing": is_traced,
        })
    }

    fn user_json(&self, name: &Arc<str>, user: &User) -> Json {
        let limits = self.user_limits.find(name);
        let hash = user
            .password
            .as_ref()
            .filter(|_| !self.hides_password(name));
        let hash = hash.map(PasswordHash::to_text);
        let algorithm = user.password.as_ref().map(PasswordHash::algorithm);
        json!({
            "name": **name,
            "password_hash": hash.unwrap_or_default(),
            "hashing_algorithm": algorithm.unwrap_or("rabbit_password_hashing_sha256"),
            "tags": user.tags,
            "limits": limits.map_or_else(|| json!({}), Limits::to_json),
        })
    }
}

fn is_of(known: &str, wanted: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| wanted == known)
}
