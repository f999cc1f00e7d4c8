//! Definitions, naively: a list of all that was said and still holds, the last said at its end.

use crosstie_routing::{Action, error};
use crosstie_wamp::{MatchPolicy, Value};

use super::Model;
use super::definition::Definition;
use crate::reflect::{Defined, Reflect, Whether};
use crate::{Name, Sent};

impl Model {
    pub(super) fn answer_reflect(
        &mut self,
        from: Name,
        reflect: &Reflect,
    ) -> Result<Value, &'static str> {
        match reflect {
            Reflect::Define {
                uri,
                description,
                of,
            } => self.define(from, kind_or_procedure(*of)?, uri, description),
            Reflect::Undefine { uri, of } => {
                let of = kind_or_procedure(*of)?;
                Ok(Value::Bool(self.undefine(from, of, uri)))
            }
            Reflect::Describe { uri, of } => match kind(*of)? {
                Some(of) => Ok(self.describe_defined(from, of, uri)),
                None => {
                    let all = Defined::ALL.map(|of| (of, self.describe_defined(from, of, uri)));
                    let known = all.into_iter().filter(|(_, known)| *known != Value::Null);
                    let known = known.map(|(of, known)| (of.name().to_owned(), known));
                    Ok(Value::Dict(known.collect()))
                }
            },
            Reflect::DescribeOne { uri, of } => Ok(self.describe_defined(from, *of, uri)),
            Reflect::List { of } => {
                let all = self.definitions.iter().filter(|known| known.of == *of);
                let mut uris: Vec<String> = all.map(|known| known.uri.clone()).collect();
                uris.sort_unstable();
                uris.dedup();
                uris.retain(|uri| self.may_see(from, *of, uri));
                let uris = uris.iter().map(|uri| Value::from(uri.as_str()));
                Ok(Value::List(uris.collect()))
            }
        }
    }

    fn define(
        &mut self,
        from: Name,
        of: Defined,
        uri: &str,
        description: &str,
    ) -> Result<Value, &'static str> {
        Self::check_uri(uri, MatchPolicy::Exact)?;
        let action = match of {
            Defined::Procedure => Some(Action::Register),
            Defined::Topic => Some(Action::Publish),
            // A session that may define anything may define an error.
            Defined::Error => None,
        };
        if let Some(action) = action {
            Self::check_reserved(uri)?;
            self.authorize(from, action, uri, MatchPolicy::Exact)?;
        }
        let others = self
            .definitions
            .iter()
            .filter(|known| known.by == from && (known.of, known.uri.as_str()) != (of, uri));
        let has = others.count();
        let limits = &self.config.limits;
        if has >= limits.definitions_max {
            return Err(error::DEFINITIONS_MAX);
        }
        // The last quarter is for sessions with less than their share.
        let (all, all_max) = (self.definitions.len(), limits.realm_definitions_max);
        let is_scarce = all >= all_max - all_max / 4;
        if all >= all_max || (is_scarce && has >= all_max / self.members.len()) {
            return Err(error::REALM_DEFINITIONS_MAX);
        }
        let is_it = |known: &Definition| (known.of, known.uri.as_str()) == (of, uri);
        self.definitions
            .retain(|known| !(known.by == from && is_it(known)));
        let is_new = !self.definitions.iter().any(is_it);
        self.definitions.push(Definition {
            by: from,
            of,
            uri: uri.to_owned(),
            description: description.to_owned(),
        });
        let session = self.member(from).id;
        self.tell("wamp.reflect.on_define", told(session, of, uri));
        Ok(Value::Bool(is_new))
    }

    /// Whether it had one of that.
    fn undefine(&mut self, from: Name, of: Defined, uri: &str) -> bool {
        let is_it = |known: &Definition| (known.of, known.uri.as_str()) == (of, uri);
        let own = |known: &Definition| known.by == from && is_it(known);
        let Some(place) = self.definitions.iter().position(own) else {
            return false;
        };
        self.definitions.remove(place);
        let session = self.member(from).id;
        self.undefined.push((of, uri.to_owned(), session));
        if !self.definitions.iter().any(is_it) {
            // If several leave together, any may be the last.
            let last = self.undefined.iter();
            let last = last.filter(|(kind, known, _)| (*kind, known.as_str()) == (of, uri));
            let possible: Vec<_> = last.map(|(_, _, who)| told(*who, of, uri)).collect();
            self.tell_one_of("wamp.reflect.on_undefine", &possible);
        }
        true
    }

    /// A session has left, and still has its name.
    pub(super) fn undefine_all(&mut self, from: Name) {
        let own = self.definitions.iter().filter(|known| known.by == from);
        let own: Vec<_> = own.map(|known| (known.of, known.uri.clone())).collect();
        for (of, uri) in own {
            self.undefine(from, of, &uri);
        }
    }

    fn describe_defined(&mut self, from: Name, of: Defined, uri: &str) -> Value {
        let is_it = |known: &&Definition| (known.of, known.uri.as_str()) == (of, uri);
        let last = self.definitions.iter().rfind(is_it);
        let last = last.map(|known| Value::from(known.description.as_str()));
        match last {
            Some(description) if self.may_see(from, of, uri) => description,
            _ => Value::Null,
        }
    }

    fn may_see(&mut self, from: Name, of: Defined, uri: &str) -> bool {
        let actions = match of {
            Defined::Procedure => [Action::Call, Action::Register],
            Defined::Topic => [Action::Subscribe, Action::Publish],
            Defined::Error => return true,
        };
        let mut actions = actions.into_iter();
        actions.any(|action| {
            self.authorize(from, action, uri, MatchPolicy::Exact)
                .is_ok()
        })
    }
}

/// Whether it announces that no session defines something of this session's any more.
pub(super) fn is_undefined(sent: &Sent, session: u64) -> bool {
    let Sent::MetaEvent { arguments, .. } = sent else {
        return false;
    };
    let mut kinds = Defined::ALL.into_iter();
    kinds.any(|of| arguments.starts_with(&format!("[{session},\"{}\",", of.name())))
}

fn told(session: u64, of: Defined, uri: &str) -> Vec<Value> {
    vec![
        Value::from(session),
        Value::from(of.name()),
        Value::from(uri),
    ]
}

fn kind(of: Whether) -> Result<Option<Defined>, &'static str> {
    match of {
        Whether::Unsaid => Ok(None),
        Whether::Said(of) => Ok(Some(of)),
        Whether::Nonsense => Err(error::INVALID_ARGUMENT),
    }
}

fn kind_or_procedure(of: Whether) -> Result<Defined, &'static str> {
    Ok(kind(of)?.unwrap_or(Defined::Procedure))
}
