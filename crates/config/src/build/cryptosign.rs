//! Principals identified by keys.

use std::sync::Arc;

use crosstie_auth::wamp::{Cryptosign, KeyHolder, KeyHolders, PublicKey};

use super::Builder;
use super::auth::shared;
use crate::model::Realm;
use crate::problem::Problem;
use crate::tree::{Value, quoted};
use crate::view::View;

impl Builder<'_> {
    pub(super) fn cryptosign(&mut self, cryptosign: View<'_>) -> Cryptosign {
        if let Some(authenticator) = self.asked(cryptosign) {
            return Cryptosign::Dynamic(authenticator);
        }
        let default_role = shared(cryptosign, "default-role");
        let mut principals = KeyHolders::default();
        for (authid, principal) in cryptosign.map("principals") {
            let holder = KeyHolder {
                keys: self.keys(principal),
                role: shared(principal, "role"),
                realm: principal.text("realm").map(str::to_owned),
            };
            principals.insert(authid, holder);
            self.check_has_role(authid, principal, default_role.as_ref());
        }
        Cryptosign::Static {
            principals: Arc::new(principals),
            default_role,
        }
    }

    fn keys(&mut self, principal: View<'_>) -> Vec<PublicKey> {
        let mut keys = Vec::new();
        for item in principal.items("authorized_keys") {
            let Value::Text(text) = &item.value else {
                continue;
            };
            match PublicKey::parse(text) {
                Ok(key) => keys.push(key),
                Err(e) => {
                    let message = format!("{} is {e}", quoted(text));
                    self.problems.push(Problem::error(item.span, message));
                }
            }
        }
        keys
    }

    /// Checks that the worker has the realms of principals.
    pub(super) fn check_realms(&mut self, method: View<'_>, realms: &[Realm]) {
        if method.text("type") != Some("static") {
            return;
        }
        for (_, principal) in method.map("principals") {
            if let Some(name) = principal.text("realm")
                && realms.iter().all(|realm| realm.name != name)
            {
                let message = format!("this router worker has no realm {}", quoted(name));
                self.error(principal, "realm", message);
            }
        }
    }
}
