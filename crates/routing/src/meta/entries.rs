//! Meta procedures that exist for subscriptions and for registrations alike.

use crosstie_wamp::{MatchPolicy, Value};

use super::arguments::Arguments;
use super::ids;
use crate::context::Context;
use crate::events::{Entry, is_protected};
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::session::Session;

/// A table of subscriptions or of registrations.
pub(crate) trait Entries {
    /// The name of its members.
    const NAME: &'static str;
    /// The parameter with an entry's id.
    const ID: &'static str;
    /// The parameter with a URI.
    const URI: &'static str;
    /// The parameter with a session that takes part in an entry.
    const MEMBER: &'static str;

    /// All entries.
    fn all(&self) -> impl Iterator<Item = Entry<'_>>;

    /// The entries that a session takes part in.
    fn of_session<H>(&self, session: &Session<H>) -> Vec<Entry<'_>>;

    /// The entry with that id.
    fn find(&self, id: u64) -> Option<Entry<'_>>;

    /// The entry for that very pattern.
    fn lookup(&self, policy: MatchPolicy, uri: &str) -> Option<u64>;

    /// The answer of `match` for a URI: its registration or its subscriptions.
    fn matching(&self, uri: &str, steps: &mut u32) -> Value;

    /// The sessions that take part in the entry with that id.
    fn members(&self, id: u64) -> impl Iterator<Item = SessionIndex>;

    /// Removes a session's part in the entry with that id, and tells the session if it supports that; returns whether
    /// it had one.
    fn revoke<H>(
        &mut self,
        context: &mut Context<'_, H>,
        id: u64,
        member: SessionIndex,
        reason: Option<&str>,
    ) -> bool;

    fn no_such(id: u64) -> Fault;

    fn no_member(id: u64, session: u64) -> Fault;
}

/// The procedures.
#[derive(Clone, Copy)]
pub(super) enum Question {
    List,
    Lookup,
    Match,
    Get,
    Members,
    CountMembers,
}

const ENTRIES_PER_STEP: usize = 2;

impl Question {
    /// The argument of the RESULT.
    pub(super) fn answer<E: Entries, H>(
        self,
        entries: &E,
        context: &mut Context<'_, H>,
        arguments: &Arguments,
    ) -> Result<Value, Fault> {
        Ok(match self {
            Self::List => return list(entries, context, arguments),
            Self::Members => return members(entries, context, arguments),
            Self::Lookup => {
                let uri = arguments.text(E::URI)?;
                let policy = arguments.match_policy()?;
                let found = entries.lookup(policy, uri).filter(|_| !is_protected(uri));
                found.map_or(Value::Null, Value::from)
            }
            Self::Match => {
                let uri = arguments.text(E::URI)?;
                match is_protected(uri) {
                    true => Value::Null,
                    false => entries.matching(uri, context.steps),
                }
            }
            Self::Get => {
                let entry = find(entries, arguments)?;
                Value::Dict(context.events.describe(&entry))
            }
            Self::CountMembers => {
                let entry = find(entries, arguments)?;
                let count = joined(entries, context, entry.id).count();
                context.spend((count / ENTRIES_PER_STEP) as u32);
                Value::from(count as u64)
            }
        })
    }
}

/// Removes a session's part in a subscription or registration.
pub(super) fn remove_member<E: Entries, H>(
    entries: &mut E,
    context: &mut Context<'_, H>,
    arguments: &Arguments,
) -> Result<(), Fault> {
    let reason = arguments.optional_reason()?;
    let session = arguments.id(E::MEMBER)?;
    let member = super::sessions::find_session(context.sessions, session)?;
    let id = find(entries, arguments)?.id;
    match entries.revoke(context, id, member, reason) {
        true => Ok(()),
        false => Err(E::no_member(id, session)),
    }
}

/// The ids by matching policy.
fn list<E: Entries, H>(
    entries: &E,
    context: &mut Context<'_, H>,
    arguments: &Arguments,
) -> Result<Value, Fault> {
    let page = arguments.page()?;
    let is_open = |entry: &Entry<'_>| !is_protected(entry.uri);
    let (part, looked_at) = match arguments.optional_id("session_id")? {
        None => {
            let mut looked_at = 0;
            let counted = entries.all().inspect(|_| looked_at += 1);
            (page.of(counted.filter(is_open))?, looked_at)
        }
        Some(id) => {
            let index = super::sessions::find_session(context.sessions, id)?;
            let all = entries.of_session(&context.sessions[index]);
            let looked_at = all.len();
            (page.of(all.into_iter().filter(is_open))?, looked_at)
        }
    };
    context.spend((looked_at / ENTRIES_PER_STEP) as u32);
    let policies = [
        MatchPolicy::Exact,
        MatchPolicy::Prefix,
        MatchPolicy::Wildcard,
    ];
    let of_policy = policies.map(|policy| {
        let of_it = part.iter().filter(|entry| entry.match_policy == policy);
        (policy.name().to_owned(), ids(of_it.map(|entry| entry.id)))
    });
    Ok(Value::Dict(of_policy.into()))
}

fn members<E: Entries, H>(
    entries: &E,
    context: &mut Context<'_, H>,
    arguments: &Arguments,
) -> Result<Value, Fault> {
    let entry = find(entries, arguments)?;
    let page = arguments.page()?;
    let members = joined(entries, context, entry.id);
    let part = page.of(members.map(|index| context.sessions[index].id.0))?;
    context.spend((page.offset.saturating_add(part.len()) / ENTRIES_PER_STEP) as u32);
    Ok(ids(part))
}

/// The sessions that take part in it and have not left.
fn joined<E: Entries, H>(
    entries: &E,
    context: &Context<'_, H>,
    id: u64,
) -> impl Iterator<Item = SessionIndex> {
    let sessions = &*context.sessions;
    let members = entries.members(id);
    members.filter(|index| sessions[*index].is_in())
}

fn find<'e, E: Entries>(entries: &'e E, arguments: &Arguments) -> Result<Entry<'e>, Fault> {
    let id = arguments.id(E::ID)?;
    let entry = entries.find(id).ok_or_else(|| E::no_such(id))?;
    if is_protected(entry.uri) {
        let text = format!("{} {id} is of the router's own", E::NAME);
        return Err(Fault::new(error::NOT_AUTHORIZED, text));
    }
    Ok(entry)
}
