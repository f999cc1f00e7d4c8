//! Claims of a token: the user, the audience, the scopes.

use std::collections::BTreeSet;

use crosstie_wamp::{Dict, Value};

use super::flaw::Flaw;
use super::rules::Rules;
use crate::wamp::jwt::token::find;

/// The user of a token: its client, or else its subject, or else the name that the client sends.
pub(super) fn user<'c>(claims: &'c Dict, name: &'c str) -> Result<&'c str, Flaw> {
    let claim = |claim: &'static str| match find(claims, claim) {
        None => Ok(None),
        Some(value) => value.as_str().map(Some).ok_or_else(|| Flaw::claim(claim)),
    };
    let user = match claim("client_id")? {
        Some(client) => client,
        None => claim("sub")?.unwrap_or(name),
    };
    match user.is_empty() {
        true => Err(Flaw::claim("sub")),
        false => Ok(user),
    }
}

/// Checks that the token is for a resource server. The claim is needed even if there is no id to look for.
pub(super) fn check_audience(claims: &Dict, id: &str) -> Result<(), Flaw> {
    let is_named = match find(claims, "aud") {
        None => return Err(Flaw::claim("aud")),
        Some(_) if id.is_empty() => true,
        Some(Value::String(words)) => words.split(' ').any(|word| word == id),
        Some(Value::List(items)) => items.iter().any(|item| item.as_str() == Some(id)),
        Some(_) => return Err(Flaw::claim("aud")),
    };
    match is_named {
        true => Ok(()),
        false => Err(Flaw::Audience {
            expected: id.to_owned(),
        }),
    }
}

/// All scopes of a token, of this resource server and of others, with those that they stand for.
pub(super) fn scopes(claims: &Dict, rules: &Rules) -> Result<BTreeSet<String>, Flaw> {
    let mut scopes = match find(claims, "scope") {
        None => None,
        Some(value) => Some(words(value, "scope")?),
    };
    if let Some(key) = &rules.additional_scopes_key
        && let Some(value) = find(claims, key)
    {
        let additional = additional(value, key, &rules.resource_server_id)?;
        if !additional.is_empty() {
            scopes.get_or_insert_default().extend(additional);
        }
    }
    if let Some(authorization) = find(claims, "authorization") {
        // Such a token needs a claim `scope`, too.
        let scopes = scopes.as_mut().ok_or_else(|| Flaw::claim("scope"))?;
        scopes.extend(of_permissions(authorization)?);
    }
    let aliases = &rules.scope_aliases;
    if scopes.is_none() && aliases.is_empty() {
        return Err(Flaw::claim("scope"));
    }
    let mut all: BTreeSet<String> = scopes.unwrap_or_default().into_iter().collect();
    let expanded = all.iter().filter_map(|scope| aliases.get(scope)).flatten();
    let expanded: Vec<_> = expanded.cloned().collect();
    all.extend(expanded);
    Ok(all)
}

/// Scopes in one text, or as a list.
fn words(value: &Value, name: &str) -> Result<Vec<String>, Flaw> {
    let word = |item: &Value| item.as_str().map(str::to_owned);
    match value {
        Value::String(words) => {
            let words = words.split(' ').filter(|word| !word.is_empty());
            Ok(words.map(str::to_owned).collect())
        }
        Value::List(items) => {
            let words = items.iter().map(word).collect::<Option<_>>();
            words.ok_or_else(|| Flaw::claim(name))
        }
        _ => Err(Flaw::claim(name)),
    }
}

/// Scopes of the additional claim. In an object they are those of this resource server, without its prefix.
fn additional(value: &Value, name: &str, id: &str) -> Result<Vec<String>, Flaw> {
    match value {
        Value::Dict(by_server) => match find(by_server, id) {
            Some(of_server @ (Value::String(_) | Value::List(_))) => {
                let words = words(of_server, name)?.into_iter();
                Ok(words.map(|word| format!("{id}.{word}")).collect())
            }
            _ => Ok(Vec::new()),
        },
        Value::String(_) | Value::List(_) => words(value, name),
        _ => Ok(Vec::new()),
    }
}

/// Scopes of permissions, as Keycloak has them in a requesting party's token.
fn of_permissions(authorization: &Value) -> Result<Vec<String>, Flaw> {
    let odd = || Flaw::claim("authorization");
    let permissions = match find(authorization.as_dict().ok_or_else(odd)?, "permissions") {
        None => return Ok(Vec::new()),
        Some(Value::List(permissions)) => permissions,
        Some(_) => return Err(odd()),
    };
    let mut scopes = Vec::new();
    for permission in permissions.iter().filter_map(Value::as_dict) {
        match find(permission, "scopes") {
            None => {}
            // One text is one scope here.
            Some(Value::String(scope)) => scopes.push(scope.clone()),
            Some(value @ Value::List(_)) => scopes.extend(words(value, "authorization")?),
            Some(_) => return Err(odd()),
        }
    }
    Ok(scopes)
}
