//! Authenticators that are Python functions. They run as components beside their router, in a realm that no
//! configuration can name, so that only the router calls them.

use serde_json::{Map, json};

use super::{Builder, Names};
use crate::catalogue;
use crate::model::{Component, ComponentKind, Json, Realm, Role};
use crate::view::View;

/// The realm that they are registered in.
pub(super) const REALM: &str = "crosstie.authenticators";

/// The class that hosts one, in the project's own Python package.
const CLASSNAME: &str = "crosstie.container.authenticator.FunctionAuthenticator";

impl Builder<'_> {
    /// Adds a function to those hosted; returns its procedure.
    pub(super) fn host_function(&mut self, method: View<'_>) -> String {
        let Some(functions) = &mut self.functions else {
            let message = "a function is hosted for transports of the configuration only: one that is \
                           started later has a procedure (type \"dynamic\")";
            self.error(method, "type", message);
            return String::new();
        };
        let procedure = format!("crosstie.authenticator.function{}", functions.len() + 1);
        let config = match method.json("config") {
            Json::Null => Json::Object(Map::new()),
            config => config,
        };
        functions.push(json!({
            "procedure": procedure,
            "create": method.text("create"),
            "config": config,
        }));
        procedure
    }

    /// Adds the components for a router worker's functions, and their realm.
    pub(super) fn hosted(
        &mut self,
        worker: View<'_>,
        components: &mut Vec<Component>,
        realms: &mut Vec<Realm>,
    ) {
        let functions = self.functions.take().unwrap_or_default();
        if functions.is_empty() {
            return;
        }
        let mut ids = Names::new("the component id", "authenticator");
        ids = ids.of(worker.objects("components"));
        for extra in functions {
            let id = ids.made();
            components.push(Component {
                kind: ComponentKind::Class {
                    classname: CLASSNAME.to_owned(),
                },
                realm: REALM.to_owned(),
                role: Some(Role::TRUSTED.to_owned()),
                definition: json!({
                    "id": id,
                    "type": "class",
                    "classname": CLASSNAME,
                    "realm": REALM,
                    "role": Role::TRUSTED,
                    "extra": extra,
                }),
                id,
            });
        }
        realms.push(Realm {
            limits: Default::default(),
            retention: Vec::new(),
            name: REALM.to_owned(),
            ..self.realm(View::empty(&catalogue::REALM))
        });
    }
}
