//! Which method a session comes by, and the one for which nothing has to be proven.

use std::sync::Arc;

use crosstie_wamp::Value;

use super::{Cause, Given, Hello, Method, Methods, Principal, Provider, Refusal, Step};

/// The first of the client's methods that is configured is final.
pub(super) fn choose(methods: &Methods, offered: &[Value]) -> Result<Method, Refusal> {
    let offered = offered.iter().filter_map(Value::as_str);
    let mut known = offered.clone().filter_map(Method::parse);
    let chosen = match offered.count() {
        0 => Some(Method::Anonymous).filter(|method| methods.has(*method)),
        _ => known.find(|method| methods.has(*method)),
    };
    chosen.ok_or_else(|| {
        let possible = Method::ALL.into_iter().filter(|m| methods.has(*m));
        let possible: Vec<_> = possible.map(Method::name).collect();
        let text = format!(
            "none of the offered authmethods is possible here; possible: {}",
            possible.join(", ")
        );
        let reason = "wamp.error.no_matching_auth_method";
        Refusal::new(reason, text, Cause::NoMethod)
    })
}

pub(super) fn anonymous(
    role: &Arc<str>,
    only: Option<&str>,
    authid: Option<&str>,
    hello: Hello<'_>,
    given: &Given,
) -> Step {
    if only.is_some_and(|only| only != hello.realm) {
        let text = format!("anonymous sessions may not join realm {:?}", hello.realm);
        let reason = "wamp.error.authorization_denied";
        return Step::Refuse(Refusal::new(reason, text, Cause::RealmNotAllowed));
    }
    Step::Accept(Box::new(Principal {
        realm: hello.realm.to_owned(),
        authid: authid.map_or_else(|| given.authid(), str::to_owned),
        authrole: Arc::clone(role),
        authmethod: Method::Anonymous,
        authprovider: Provider::Static,
        authextra: hello.authextra.cloned().unwrap_or_default(),
    }))
}
