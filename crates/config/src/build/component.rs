//! Components, in containers and beside routers.

use super::{Builder, Names};
use crate::model::{Component, ComponentKind, Realm};
use crate::tree::quoted;
use crate::view::View;

impl Builder<'_> {
    /// The components of a container, or of a router with these realms.
    pub(super) fn components(
        &mut self,
        worker: View<'_>,
        realms: Option<&[Realm]>,
    ) -> Vec<Component> {
        let mut ids = Names::new("the component id", "component").of(worker.objects("components"));
        let mut components: Vec<Component> = Vec::new();
        for object in worker.objects("components") {
            let id = ids.id(object, self.problems);
            let component = self.component(object, id);
            if let Some(realms) = realms {
                self.check_place(object, &component, realms);
            }
            self.check_order(object, &component.id, &components);
            components.push(component);
        }
        components
    }

    pub(crate) fn component(&mut self, object: View<'_>, id: String) -> Component {
        let kind = match object.text("type") {
            Some("function") => {
                self.check_callbacks(object);
                ComponentKind::Function
            }
            _ => ComponentKind::Class {
                classname: object.text("classname").unwrap_or_default().into(),
            },
        };
        self.check_tls(object);
        let mut definition = object.to_json();
        let realm = object.text("realm").unwrap_or_default().to_owned();
        let role = object.has("role").then(|| object.text("role"));
        let role = role.flatten().map(str::to_owned);
        if let Some(definition) = definition.as_object_mut() {
            definition.insert("id".into(), id.as_str().into());
            let references = self.references(object);
            if !references.is_empty() {
                definition.insert("references".into(), references.into());
            } else {
                definition.remove("references");
            }
        }
        Component {
            id,
            kind,
            realm,
            role,
            definition,
        }
    }

    /// Reports a certificate without its key, and a key without its certificate.
    fn check_tls(&mut self, object: View<'_>) {
        if !object.has("transport") {
            return;
        }
        let tls = object
            .object("transport")
            .and_then(|transport| transport.object("endpoint"))
            .filter(|endpoint| endpoint.has("tls"))
            .and_then(|endpoint| endpoint.object("tls"));
        let Some(tls) = tls else { return };
        for (one, other) in [("certificate", "key"), ("key", "certificate")] {
            if tls.given(one).is_some() && tls.given(other).is_none() {
                let message = format!("\"{one}\" in a component's TLS needs \"{other}\" beside it");
                self.error(tls, one, message);
            }
        }
    }

    fn check_callbacks(&mut self, object: View<'_>) {
        if object.section("callbacks").is_empty() {
            let message = "the function component has no callbacks: it does nothing";
            self.warn(object, "callbacks", message);
        }
    }

    /// Whether its router worker has the realm and the role.
    fn check_place(&mut self, object: View<'_>, component: &Component, realms: &[Realm]) {
        let realm = realms.iter().find(|realm| realm.name == component.realm);
        let role = component.role.as_deref().unwrap_or_default();
        let (key, message) = match realm {
            None => {
                let realm = quoted(&component.realm);
                ("realm", format!("this router worker has no realm {realm}"))
            }
            Some(realm) if realm.roles.iter().all(|known| known.name != role) => {
                let (realm, role) = (quoted(&realm.name), quoted(role));
                let message = format!("the realm {realm} of this router worker has no role {role}");
                ("role", message)
            }
            Some(_) => return,
        };
        self.error(object, key, message);
    }
}
