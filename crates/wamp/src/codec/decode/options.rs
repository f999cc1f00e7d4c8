//! `Options` and `Details` in.
//!
//! A known key with a value of the wrong type is an error. Keys that must be passed on are kept;
//! all others are walked over, as the specification asks.

use std::borrow::Cow;

use super::super::DecodeError;
use super::super::reader::{Reader, Result, Token, enter};
use super::super::value::Room;
use super::id;
use super::passed_on::{other, said_for_others, trustlevel};
use crate::options::{ACKNOWLEDGED_DELIVERY, FORWARD_FOR, TRUSTLEVEL};
use crate::value::whole as whole_double;
use crate::{
    CallOptions, CancelMode, CancelOptions, Disclosed, EventDetails, ID_MAX, InterruptOptions,
    InvocationDetails, InvocationPolicy, MatchPolicy, PublishOptions, Receivers, RegisterOptions,
    ResultDetails, Revoked, Runmode, Seldom, SessionId, Sharding, SubscribeOptions, Unsupported,
    YieldOptions,
};

/// Reads options or details, each of their values with `entry`. A key without a value (null, undefined) counts as absent:
/// clients in JavaScript send options that their caller left out. The attributes of applications are passed on as they are.
#[inline]
pub(super) fn entries<'a, R: Reader<'a>>(
    reader: &mut R,
    room: &mut Room,
    mut entry: impl FnMut(&mut R, &str, &mut Room) -> Result<()>,
) -> Result<()> {
    all_entries(reader, room, |reader, key, room| {
        match key.starts_with('_') || !reader.null() {
            true => entry(reader, key, room),
            false => Ok(()),
        }
    })
}

/// Reads a dictionary, each of its values with `entry`.
#[inline]
pub(super) fn all_entries<'a, R: Reader<'a>>(
    reader: &mut R,
    room: &mut Room,
    mut entry: impl FnMut(&mut R, &str, &mut Room) -> Result<()>,
) -> Result<()> {
    let offset = reader.value_offset();
    let outside = room.depth_left;
    room.depth_left = enter(outside, offset)?;
    let mut dict = reader.open_dict()?;
    while reader.more(&mut dict)? {
        let key = reader.text()?;
        reader.separator()?;
        entry(reader, &key, room).map_err(|error| error.under(&key))?;
    }
    room.depth_left = outside;
    Ok(())
}

/// An unknown key of a request that is not passed on.
fn unknown<'a, R: Reader<'a>>(
    reader: &mut R,
    key: &str,
    room: &Room,
    unsupported: &mut Option<Unsupported>,
) -> Result<()> {
    *unsupported = Unsupported::from_name(key).or(*unsupported);
    reader.skip(room.depth_left)
}

pub(super) fn publish<'a, R: Reader<'a>>(
    reader: &mut R,
    room: &mut Room,
) -> Result<PublishOptions> {
    let mut options = PublishOptions::default();
    entries(reader, room, |reader, key, room| {
        match key {
            "acknowledge" => options.acknowledge = reader.boolean()?,
            "exclude_me" => options.exclude_me = reader.boolean()?,
            "disclose_me" => options.disclose_me = Some(reader.boolean()?),
            "retain" => options.retain = reader.boolean()?,
            "retain_ms" => options.retain_ms = Some(milliseconds(reader)?),
            "exclude" => receivers(&mut options).exclude = Some(list(reader, room, session)?),
            "exclude_authid" => {
                receivers(&mut options).exclude_authid = Some(list(reader, room, owned_text)?);
            }
            "exclude_authrole" => {
                receivers(&mut options).exclude_authrole = Some(list(reader, room, owned_text)?);
            }
            "eligible" => receivers(&mut options).eligible = Some(list(reader, room, session)?),
            "eligible_authid" => {
                receivers(&mut options).eligible_authid = Some(list(reader, room, owned_text)?);
            }
            "eligible_authrole" => {
                receivers(&mut options).eligible_authrole = Some(list(reader, room, owned_text)?);
            }
            "rkey" => sharding(reader, key, &mut options.sharding, room)?,
            "runmode" | "nkey" => {
                let said = &mut options.sharding.get_or_insert_default().unsupported;
                unknown(reader, key, room, said)?;
            }
            TRUSTLEVEL => trustlevel(reader, &mut options.passthru)?,
            _ => other(reader, key, room, &mut options.passthru)?,
        }
        Ok(())
    })?;
    Ok(options)
}

fn receivers(options: &mut PublishOptions) -> &mut Receivers {
    options.receivers.get_or_insert_default()
}

pub(super) fn subscribe<'a, R: Reader<'a>>(
    reader: &mut R,
    room: &mut Room,
) -> Result<SubscribeOptions> {
    let mut options = SubscribeOptions::default();
    entries(reader, room, |reader, key, room| match key {
        "match" => set_word(reader, &MATCH_POLICIES, &mut options.match_policy),
        "get_retained" => reader.boolean().map(|get| options.get_retained = get),
        "nkey" => owned_text(reader).map(|nkey| options.nkey = Some(nkey.into_boxed_str()).into()),
        ACKNOWLEDGED_DELIVERY => {
            let wants = reader.boolean();
            wants.map(|wants| options.acknowledged_delivery = wants)
        }
        FORWARD_FOR => said_for_others(reader, room).map(|()| options.is_forwarded = true),
        _ => unknown(reader, key, room, &mut options.unsupported),
    })?;
    Ok(options)
}

pub(super) fn event<'a, R: Reader<'a>>(
    reader: &mut R,
    room: &mut Room,
) -> Result<EventDetails<'a>> {
    let mut details = EventDetails::default();
    let mut publisher = Disclosure::default();
    entries(reader, room, |reader, key, room| {
        match key {
            "topic" => details.topic = Some(reader.text()?),
            "publisher" => publisher.session = Some(session(reader)?),
            "publisher_authid" => publisher.authid = reader.text()?,
            "publisher_authrole" => publisher.authrole = reader.text()?,
            "retained" => details.retained = reader.boolean()?,
            ACKNOWLEDGED_DELIVERY => details.acknowledged_delivery = reader.boolean()?,
            TRUSTLEVEL => trustlevel(reader, &mut details.passthru)?,
            _ => other(reader, key, room, &mut details.passthru)?,
        }
        Ok(())
    })?;
    details.publisher = publisher.disclosed();
    Ok(details)
}

pub(super) fn call<'a, R: Reader<'a>>(reader: &mut R, room: &mut Room) -> Result<CallOptions> {
    let mut options = CallOptions::default();
    entries(reader, room, |reader, key, room| {
        match key {
            "timeout" => options.timeout_ms = milliseconds(reader)?,
            "receive_progress" => options.receive_progress = reader.boolean()?,
            "progress" => options.progress = reader.boolean()?,
            "disclose_me" => options.disclose_me = Some(reader.boolean()?),
            "rkey" | "runmode" | "nkey" => sharding(reader, key, &mut options.sharding, room)?,
            TRUSTLEVEL => trustlevel(reader, &mut options.passthru)?,
            _ => other(reader, key, room, &mut options.passthru)?,
        }
        Ok(())
    })?;
    Ok(options)
}

/// The keys of a request that name shards.
#[cold]
fn sharding<'a, R: Reader<'a>>(
    reader: &mut R,
    key: &str,
    said: &mut Seldom<Sharding>,
    room: &Room,
) -> Result<()> {
    let said = said.get_or_insert_default();
    match key {
        "rkey" => said.rkey = Some(reader.text()?.into()),
        "runmode" => said.runmode = word(reader, &RUNMODES)?,
        _ => unknown(reader, key, room, &mut said.unsupported)?,
    }
    Ok(())
}

pub(super) fn cancel<'a, R: Reader<'a>>(reader: &mut R, room: &mut Room) -> Result<CancelOptions> {
    let mut options = CancelOptions::default();
    entries(reader, room, |reader, key, room| match key {
        "mode" => set_word(reader, &CANCEL_MODES, &mut options.mode),
        _ => reader.skip(room.depth_left),
    })?;
    Ok(options)
}

pub(super) fn result<'a, R: Reader<'a>>(
    reader: &mut R,
    room: &mut Room,
) -> Result<ResultDetails<'a>> {
    let mut details = ResultDetails::default();
    let mut callee = Disclosure::default();
    entries(reader, room, |reader, key, room| {
        match key {
            "progress" => details.progress = reader.boolean()?,
            "callee" => callee.session = Some(session(reader)?),
            "callee_authid" => callee.authid = reader.text()?,
            "callee_authrole" => callee.authrole = reader.text()?,
            _ => other(reader, key, room, &mut details.passthru)?,
        }
        Ok(())
    })?;
    details.callee = callee.disclosed().map(Box::new);
    Ok(details)
}

pub(super) fn register<'a, R: Reader<'a>>(
    reader: &mut R,
    room: &mut Room,
) -> Result<RegisterOptions> {
    let mut options = RegisterOptions::default();
    entries(reader, room, |reader, key, room| {
        match key {
            "match" => set_word(reader, &MATCH_POLICIES, &mut options.match_policy)?,
            "invoke" => set_word(reader, &INVOCATION_POLICIES, &mut options.invoke)?,
            "forward_timeout" => options.forward_timeout = reader.boolean()?,
            "concurrency" => options.concurrency = concurrency(reader)?,
            "force_reregister" => options.force_reregister = reader.boolean()?,
            "nkey" => options.nkey = Some(owned_text(reader)?.into_boxed_str()).into(),
            FORWARD_FOR => {
                said_for_others(reader, room)?;
                options.is_forwarded = true;
            }
            _ => unknown(reader, key, room, &mut options.unsupported)?,
        }
        Ok(())
    })?;
    Ok(options)
}

/// The details of an unrequested UNREGISTERED or UNSUBSCRIBED; `id_key` names the id.
pub(super) fn revoked<'a, Id, R: Reader<'a>>(
    reader: &mut R,
    room: &mut Room,
    id_key: &str,
    make_id: impl Fn(u64) -> Id,
) -> Result<Option<Revoked<'a, Id>>> {
    let (mut found, mut reason) = (None, None);
    entries(reader, room, |reader, key, room| {
        match key {
            _ if key == id_key => found = Some(make_id(id(reader)?)),
            "reason" => reason = Some(reader.text()?),
            _ => reader.skip(room.depth_left)?,
        }
        Ok(())
    })?;
    Ok(found.map(|id| Revoked { id, reason }))
}

pub(super) fn invocation<'a, R: Reader<'a>>(
    reader: &mut R,
    room: &mut Room,
) -> Result<InvocationDetails<'a>> {
    let mut details = InvocationDetails::default();
    let mut caller = Disclosure::default();
    entries(reader, room, |reader, key, room| {
        match key {
            "procedure" => details.procedure = Some(reader.text()?),
            "caller" => caller.session = Some(session(reader)?),
            "caller_authid" => caller.authid = reader.text()?,
            "caller_authrole" => caller.authrole = reader.text()?,
            "timeout" => details.timeout_ms = milliseconds(reader)?,
            "receive_progress" => details.receive_progress = reader.boolean()?,
            "progress" => details.progress = reader.boolean()?,
            TRUSTLEVEL => trustlevel(reader, &mut details.passthru)?,
            _ => other(reader, key, room, &mut details.passthru)?,
        }
        Ok(())
    })?;
    details.caller = caller.disclosed();
    Ok(details)
}

pub(super) fn interrupt<'a, R: Reader<'a>>(
    reader: &mut R,
    room: &mut Room,
) -> Result<InterruptOptions<'a>> {
    let mut options = InterruptOptions::default();
    entries(reader, room, |reader, key, room| {
        match key {
            "mode" => options.mode = word(reader, &CANCEL_MODES)?,
            "reason" => options.reason = Some(reader.text()?),
            _ => reader.skip(room.depth_left)?,
        }
        Ok(())
    })?;
    Ok(options)
}

pub(super) fn r#yield<'a, R: Reader<'a>>(reader: &mut R, room: &mut Room) -> Result<YieldOptions> {
    let mut options = YieldOptions::default();
    entries(reader, room, |reader, key, room| match key {
        "progress" => reader.boolean().map(|progress| options.progress = progress),
        _ => other(reader, key, room, &mut options.passthru),
    })?;
    Ok(options)
}

/// The keys by which a router discloses a caller or publisher; without the session it is not disclosed.
#[derive(Default)]
struct Disclosure<'a> {
    session: Option<SessionId>,
    authid: Cow<'a, str>,
    authrole: Cow<'a, str>,
}

impl<'a> Disclosure<'a> {
    fn disclosed(self) -> Option<Disclosed<'a>> {
        let Self {
            session,
            authid,
            authrole,
        } = self;
        session.map(|session| Disclosed {
            session,
            authid,
            authrole,
        })
    }
}

/// The words of an option, and the error for any other word.
struct Words<T: 'static> {
    expected: &'static str,
    words: &'static [(&'static str, T)],
}

const MATCH_POLICIES: Words<MatchPolicy> = Words {
    expected: "exact, prefix or wildcard",
    words: &[
        ("exact", MatchPolicy::Exact),
        ("prefix", MatchPolicy::Prefix),
        ("wildcard", MatchPolicy::Wildcard),
    ],
};

const INVOCATION_POLICIES: Words<InvocationPolicy> = Words {
    expected: "single, first, last, roundrobin, random, x_least_busy or x_sticky",
    words: &[
        ("single", InvocationPolicy::Single),
        ("first", InvocationPolicy::First),
        ("last", InvocationPolicy::Last),
        ("roundrobin", InvocationPolicy::RoundRobin),
        ("random", InvocationPolicy::Random),
        ("x_least_busy", InvocationPolicy::LeastBusy),
        // Bondy's word.
        ("queue_least_loaded", InvocationPolicy::LeastBusy),
        ("x_sticky", InvocationPolicy::Sticky),
    ],
};

const RUNMODES: Words<Runmode> = Words {
    expected: "partition or all",
    words: &[("partition", Runmode::Partition), ("all", Runmode::All)],
};

const CANCEL_MODES: Words<CancelMode> = Words {
    expected: "skip, kill or killnowait",
    words: &[
        ("skip", CancelMode::Skip),
        ("kill", CancelMode::Kill),
        ("killnowait", CancelMode::KillNoWait),
    ],
};

/// Sets the meaning of a word, unless the word is empty.
fn set_word<'a, R: Reader<'a>, T: Copy>(
    reader: &mut R,
    words: &Words<T>,
    set: &mut T,
) -> Result<()> {
    *set = word(reader, words)?.unwrap_or(*set);
    Ok(())
}

/// A word's meaning. An empty text counts as absent, as from a client whose default is one.
fn word<'a, R: Reader<'a>, T: Copy>(reader: &mut R, words: &Words<T>) -> Result<Option<T>> {
    let offset = reader.value_offset();
    let text = reader.text()?;
    match words.words.iter().find(|(word, _)| *word == text) {
        Some((_, meaning)) => Ok(Some(*meaning)),
        None if text.is_empty() => Ok(None),
        None => Err(DecodeError::unexpected(
            offset,
            words.expected,
            "another word",
        )),
    }
}

fn milliseconds<'a, R: Reader<'a>>(reader: &mut R) -> Result<u64> {
    whole(reader, 0, "milliseconds, from 0 to 2^53")
}

/// A whole number from `least`. Some clients write every number as a double.
pub(super) fn whole<'a, R: Reader<'a>>(
    reader: &mut R,
    least: u64,
    expected: &'static str,
) -> Result<u64> {
    let offset = reader.value_offset();
    let number = match reader.token()? {
        Token::Integer(number) => u64::try_from(number).ok(),
        Token::Float(number) => whole_double(number),
        _ => None,
    };
    number
        .filter(|number| (least..=ID_MAX).contains(number))
        .ok_or_else(|| DecodeError::unexpected(offset, expected, "another value"))
}

/// Concurrent invocations. A number beyond the counter's range means no bound.
fn concurrency<'a, R: Reader<'a>>(reader: &mut R) -> Result<u32> {
    let number = whole(reader, 1, "invocations, from 1 to 2^53")?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

fn session<'a, R: Reader<'a>>(reader: &mut R) -> Result<SessionId> {
    id(reader).map(SessionId)
}

fn owned_text<'a, R: Reader<'a>>(reader: &mut R) -> Result<String> {
    reader.text().map(Cow::into_owned)
}

fn list<'a, R: Reader<'a>, T>(
    reader: &mut R,
    room: &mut Room,
    element: impl Fn(&mut R) -> Result<T>,
) -> Result<Vec<T>> {
    enter(room.depth_left, reader.value_offset())?;
    let mut list = reader.open_list()?;
    let mut elements = Vec::new();
    while reader.more(&mut list)? {
        room.take(reader.value_offset())?;
        elements.push(element(reader)?);
    }
    Ok(elements)
}
