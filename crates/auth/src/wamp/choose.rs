//! The choice of a session's authentication method.

use crosstie_wamp::Value;

use super::{Cause, Channel, Hello, Method, Methods, Principal, Provider, Refusal};

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

/// The login that the client's cookie stands for. It precedes all methods that the client offers, and keeps its realm.
pub(super) fn known_again(
    methods: &Methods,
    hello: Hello<'_>,
    channel: &Channel<'_>,
) -> Option<Principal> {
    let who = channel.remembered.filter(|_| methods.cookie)?;
    let is_offered = offers_cookie(hello.authmethods);
    is_offered.then(|| Principal {
        realm: who.realm.clone(),
        authid: who.authid.clone(),
        authrole: who.authrole.clone(),
        authmethod: who.authmethod,
        authprovider: Provider::Cookie,
        authextra: who.authextra.clone(),
    })
}

/// Whether a client offers to be recognized by its cookie.
pub fn offers_cookie(authmethods: &[Value]) -> bool {
    let mut offered = authmethods.iter().filter_map(Value::as_str);
    offered.any(|method| method == "cookie")
}
