//! Authenticators that are functions: components beside their router, in a realm of its own that no
//! configuration speaks of, so that nobody else can call them.

use serde_json::{Map, json};

use super::{Builder, Names};
use crate::catalogue;
use crate::model::{Component, ComponentKind, Json, Realm, Role};
use crate::problem::Problem;
use crate::view::View;

/// Where they are registered.
pub(super) const REALM: &str = "crosstie.authenticators";

/// The class that hosts one, in the project's own Python package.
const CLASSNAME: &str = "crosstie.container.authenticator.FunctionAuthenticator";

impl Builder<'_> {
    /// Has a function hosted; returns the procedure that it will be.
    pub(super) fn host_function(&mut self, method: View<'_>) -> String {
        let Some(functions) = &mut self.functions else {
            let message = "a function is hosted for transports of the configuration only: one that is \
                           started later has a procedure (type \"dynamic\")";
            let at = method.span_of("type");
            self.problems.push(Problem::error(at, message.into()));
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

    /// The components that the functions of a router worker are, and the realm for them.
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
