//! Entries that declare nothing: users, permissions, policies, limits, parameters.

use serde_json::{Map, json};

use super::value::Value;
use super::{Reading, algorithm_of, skipped};
use crate::model::{DefinedSetting, Json, SettingKind};

/// Names of the cluster and its nodes, which every file of newer versions has.
const ABOUT_CLUSTERS: &[&str] = &["cluster_name", "cluster_tags", "internal_cluster_id"];

/// Keys of a vhost's object that its request has, too.
const ABOUT_VHOSTS: [&str; 2] = ["description", "tags"];

impl Reading<'_> {
    /// The lists in the order in which their entries can be made.
    pub(super) fn settings(&mut self, file: &Value<'_>) -> Result<(), String> {
        if !self.is_for_one() {
            for vhost in file.objects("vhosts")? {
                self.vhost(&vhost)?;
            }
            for left_out in file.objects("left_out")? {
                let user = left_out.name("user")?.to_owned();
                self.definitions.without_passwords.push(user);
            }
            for user in file.objects("users")? {
                self.user(&user)?;
            }
            if self.present.is_some() {
                for permission in file.objects("permissions")? {
                    let user = permission.name("user")?;
                    self.push(
                        SettingKind::Permission,
                        &permission,
                        user,
                        permission.json(),
                    )?;
                }
            }
            for permission in file.objects("topic_permissions")? {
                let user = permission.name("user")?;
                self.push(
                    SettingKind::TopicPermission,
                    &permission,
                    user,
                    permission.json(),
                )?;
            }
            for parameter in file.objects("global_parameters")? {
                self.global_parameter(&parameter)?;
            }
        }
        for parameter in file.objects("parameters")? {
            self.parameter(&parameter)?;
        }
        for policy in file.objects("policies")? {
            let name = policy.name("name")?;
            self.push(SettingKind::Policy, &policy, name, policy.json())?;
        }
        Ok(())
    }

    fn vhost(&mut self, vhost: &Value<'_>) -> Result<(), String> {
        let name = vhost.name("name")?;
        let metadata = vhost.get("metadata");
        let find = |key| vhost.get(key).or_else(|| metadata?.get(key));
        let about = ABOUT_VHOSTS.into_iter().filter_map(|key| {
            let value = find(key).filter(|value| !is_empty(value))?;
            Some((key.to_owned(), value.clone()))
        });
        let about: Map<_, _> = about.collect();
        if !about.is_empty() {
            self.add(SettingKind::Vhost, name, "", about.into());
        }
        let limits = vhost.get("limits").filter(|limits| !is_empty(limits));
        if let Some(limits) = limits {
            let body = json!({"value": as_object(limits)});
            self.add(SettingKind::VhostLimits, name, "", body);
        }
        Ok(())
    }

    fn user(&mut self, user: &Value<'_>) -> Result<(), String> {
        let name = user.name("name")?;
        let mut body = user.json().as_object().cloned().unwrap_or_default();
        let limits = body
            .shift_remove("limits")
            .filter(|limits| !limits.is_null());
        if self.present.is_some() {
            let algorithm = algorithm_of(self.version.as_deref());
            let has_hash = body.contains_key("password_hash");
            if has_hash && !body.contains_key("hashing_algorithm") {
                body.insert("hashing_algorithm".to_owned(), algorithm.into());
            }
            self.add(SettingKind::User, "", name, body.into());
        }
        // An existing user loses its limits by an empty object.
        let limits = limits.filter(|limits| self.present.is_some() || !is_empty(limits));
        if let Some(limits) = limits {
            let body = json!({"value": as_object(&limits)});
            self.add(SettingKind::UserLimits, "", name, body);
        }
        Ok(())
    }

    fn global_parameter(&mut self, parameter: &Value<'_>) -> Result<(), String> {
        let name = parameter.text("name")?;
        // At run time it is compared with the broker's own.
        if self.present.is_some() || !ABOUT_CLUSTERS.contains(&name) {
            let body = parameter.json().clone();
            self.add(SettingKind::GlobalParameter, "", name, body);
        }
        Ok(())
    }

    fn parameter(&mut self, parameter: &Value<'_>) -> Result<(), String> {
        let kind = match parameter.text("component")? {
            "operator_policy" => SettingKind::OperatorPolicy,
            "vhost-limits" => SettingKind::VhostLimits,
            _ => {
                let skipped = skipped::parameter(parameter)?;
                self.definitions.skipped.push(skipped);
                return Ok(());
            }
        };
        let value = parameter.object("value");
        match kind {
            SettingKind::OperatorPolicy => {
                let name = parameter.name("name")?;
                let mut policy = value?.json().clone();
                if let Some(definition) = policy.get_mut("definition") {
                    *definition = as_object(definition);
                }
                self.push(kind, parameter, name, &policy)
            }
            _ => {
                let limits = as_object(parameter.get("value").unwrap_or(&Json::Null));
                self.push(kind, parameter, "", &json!({"value": limits}))
            }
        }
    }

    /// Adds an entry of a vhost, unless that is absent.
    fn push(
        &mut self,
        kind: SettingKind,
        of: &Value<'_>,
        name: &str,
        body: &Json,
    ) -> Result<(), String> {
        let vhost = match self.present.and_then(|present| present.only) {
            Some(only) => only,
            None => of.name("vhost")?,
        };
        match self.no_home(vhost)? {
            None => self.add(kind, vhost, name, body.clone()),
            Some(why) => self.skip(kind.describe(vhost, name), why),
        }
        Ok(())
    }

    fn add(&mut self, kind: SettingKind, vhost: &str, name: &str, body: Json) {
        self.definitions.settings.push(DefinedSetting {
            kind,
            vhost: vhost.to_owned(),
            name: name.to_owned(),
            body,
        });
    }
}

impl SettingKind {
    /// The kind and the names: `policy 'ha' in vhost '/'`.
    pub fn describe(self, vhost: &str, name: &str) -> String {
        match self {
            Self::GlobalParameter => format!("global parameter '{name}'"),
            Self::OperatorPolicy => format!("operator policy '{name}' in vhost '{vhost}'"),
            Self::Permission => format!("permission of user '{name}' in vhost '{vhost}'"),
            Self::Policy => format!("policy '{name}' in vhost '{vhost}'"),
            Self::TopicPermission => {
                format!("topic permission of user '{name}' in vhost '{vhost}'")
            }
            Self::User => format!("user '{name}'"),
            Self::UserLimits => format!("limits of user '{name}'"),
            Self::Vhost => format!("description of vhost '{vhost}'"),
            Self::VhostLimits => format!("limits of vhost '{vhost}'"),
        }
    }
}

fn is_empty(json: &Json) -> bool {
    match json {
        Json::Array(items) => items.is_empty(),
        Json::Object(entries) => entries.is_empty(),
        Json::String(text) => text.is_empty(),
        Json::Null => true,
        _ => false,
    }
}

/// `rabbitmqctl` writes the objects inside of parameters as lists of pairs: limits, definitions of operator policies.
fn as_object(value: &Json) -> Json {
    let Json::Array(pairs) = value else {
        return value.clone();
    };
    let pair = |pair: &Json| Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.clone()));
    let object: Option<Map<_, _>> = pairs.iter().map(pair).collect();
    object.map_or_else(|| value.clone(), Json::Object)
}
