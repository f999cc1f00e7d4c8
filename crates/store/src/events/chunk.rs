//! Events as bytes: some of them together, with checksums.

use std::sync::Arc;

use crosstie_routing::{Identity, Login, Recorded};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Dict, PublicationId, Receivers, Serializer, SessionId, Value};

/// Events, one after the other, as they are written.
#[derive(Default)]
pub(super) struct Chunk {
    pub(super) events: u64,
    pub(super) time_min: u64,
    pub(super) time_max: u64,
    publications: Vec<u8>,
    body: Vec<u8>,
}

/// Maximum number of events: a query for the last few reads the whole chunk.
const EVENTS_MAX: u64 = 256;
const BODY_BYTES: usize = 32 << 10;

const CHECKSUM_BYTES: usize = 4;

impl Chunk {
    pub(super) fn is_full(&self) -> bool {
        self.events >= EVENTS_MAX || self.body.len() >= BODY_BYTES
    }

    /// Adds an event of a log whose events all have that topic, if it is given.
    pub(super) fn push(&mut self, event: &Recorded, topic: Option<&str>) {
        if self.events == 0 {
            (self.time_min, self.time_max) = (event.unix_us, event.unix_us);
            self.publications.extend_from_slice(&[0; CHECKSUM_BYTES]);
            self.body.extend_from_slice(&[0; CHECKSUM_BYTES]);
        }
        self.time_min = self.time_min.min(event.unix_us);
        self.time_max = self.time_max.max(event.unix_us);
        self.events += 1;
        self.publications
            .extend_from_slice(&event.publication.0.to_le_bytes());
        let out = &mut self.body;
        out.extend_from_slice(&event.unix_us.to_le_bytes());
        out.push(letter(event.serializer));
        let topic_again = topic != Some(&*event.topic);
        write(
            out,
            if topic_again {
                event.topic.as_bytes()
            } else {
                &[]
            },
        );
        let (args, kwargs) = event.payload.split_at(event.args_bytes);
        write(out, args);
        write(out, kwargs);
        match attributes(event) {
            None => write(out, &[]),
            Some(attributes) => {
                let mut bytes = Vec::new();
                // Only numbers that are none have no form.
                let _ = codec::encode_value(&attributes, Serializer::MsgPack, &mut bytes);
                write(out, &bytes);
            }
        }
    }

    /// Publications and events, each with a checksum.
    pub(super) fn finish(&mut self) -> (&[u8], &[u8]) {
        for bytes in [&mut self.publications, &mut self.body] {
            let checksum = crc32fast::hash(&bytes[CHECKSUM_BYTES..]);
            bytes[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
        }
        (&self.publications, &self.body)
    }
}

/// The ids that [`Chunk::finish`] wrote; `None` if it is something else now.
pub(super) fn publications(bytes: &[u8]) -> Option<impl Iterator<Item = PublicationId> + '_> {
    let (ids, rest) = checked(bytes)?.as_chunks::<8>();
    rest.is_empty()
        .then(|| ids.iter().map(|id| PublicationId(u64::from_le_bytes(*id))))
}

/// The events that [`Chunk::finish`] wrote.
pub(super) fn events(ids: &[u8], body: &[u8], topic: &str) -> Option<Vec<Recorded>> {
    let mut rest = checked(body)?;
    let mut found = Vec::new();
    for publication in publications(ids)? {
        found.push(event(&mut rest, publication, topic)?);
    }
    rest.is_empty().then_some(found)
}

fn event(rest: &mut &[u8], publication: PublicationId, topic: &str) -> Option<Recorded> {
    let unix_us = u64::from_le_bytes(*take(rest)?);
    let [written] = *take::<1>(rest)?;
    let mut known = Serializer::ALL.into_iter();
    let serializer = known.find(|known| letter(*known) == written)?;
    let own = str::from_utf8(read(rest)?).ok()?;
    let (args, kwargs) = (read(rest)?, read(rest)?);
    let attributes = read(rest)?;
    let mut event = Recorded {
        publication,
        unix_us,
        publisher: None,
        topic: if own.is_empty() { topic } else { own }.into(),
        receivers: None,
        passthru: None,
        serializer,
        payload: [args, kwargs].concat().into(),
        args_bytes: args.len(),
    };
    if !attributes.is_empty() {
        take_attributes(&mut event, attributes)?;
    }
    Some(event)
}

/// Attributes that few events have.
fn attributes(event: &Recorded) -> Option<Value> {
    let mut attributes = Dict::new();
    let mut put = |name: &str, value| attributes.push((name.to_owned(), value));
    if let Some((SessionId(session), who)) = &event.publisher {
        put("session", Value::from(*session));
        for (name, text) in [
            ("authid", &who.authid),
            ("authrole", &who.authrole),
            ("authmethod", &who.authmethod),
            ("authprovider", &who.authprovider),
        ] {
            put(name, Value::from(&**text));
        }
    }
    if let Some(receivers) = event.receivers.as_deref() {
        for (name, list) in [
            ("eligible", &receivers.eligible),
            ("exclude", &receivers.exclude),
        ] {
            if let Some(list) = list {
                let list = list.iter().map(|SessionId(id)| Value::from(*id));
                put(name, Value::List(list.collect()));
            }
        }
        for (name, list) in [
            ("eligible_authid", &receivers.eligible_authid),
            ("eligible_authrole", &receivers.eligible_authrole),
            ("exclude_authid", &receivers.exclude_authid),
            ("exclude_authrole", &receivers.exclude_authrole),
        ] {
            if let Some(list) = list {
                let list = list.iter().map(|name| Value::from(&**name));
                put(name, Value::List(list.collect()));
            }
        }
    }
    if let Some(passthru) = event.passthru.as_deref() {
        put("passthru", Value::Dict(passthru.clone()));
    }
    (!attributes.is_empty()).then_some(Value::Dict(attributes))
}

fn take_attributes(event: &mut Recorded, bytes: &[u8]) -> Option<()> {
    let read = codec::decode_value(Serializer::MsgPack, bytes, &Limits::default());
    let Ok(Value::Dict(attributes)) = read else {
        return None;
    };
    let (mut authid, mut login) = (Arc::<str>::default(), Login::default());
    let (mut session, mut lists) = (None, Receivers::default());
    for (name, value) in attributes {
        let names = |value: &Value| match value {
            Value::List(names) => {
                let names = names.iter();
                names.map(|name| Some(name.as_str()?.to_owned())).collect()
            }
            _ => None,
        };
        let sessions = |value: &Value| match value {
            Value::List(ids) => ids.iter().map(|id| id.as_u64().map(SessionId)).collect(),
            _ => None,
        };
        match name.as_str() {
            "eligible" => lists.eligible = Some(sessions(&value)?),
            "exclude" => lists.exclude = Some(sessions(&value)?),
            "session" => session = Some(SessionId(value.as_u64()?)),
            "authid" => authid = value.as_str()?.into(),
            "authrole" => login.authrole = value.as_str()?.into(),
            "authmethod" => login.authmethod = value.as_str()?.into(),
            "authprovider" => login.authprovider = value.as_str()?.into(),
            "eligible_authid" => lists.eligible_authid = Some(names(&value)?),
            "eligible_authrole" => lists.eligible_authrole = Some(names(&value)?),
            "exclude_authid" => lists.exclude_authid = Some(names(&value)?),
            "exclude_authrole" => lists.exclude_authrole = Some(names(&value)?),
            "passthru" => match value {
                Value::Dict(passthru) => event.passthru = Some(Box::new(passthru)),
                _ => return None,
            },
            _ => return None,
        }
    }
    event.publisher = session.map(|session| {
        let login = Arc::new(login);
        (session, Identity { authid, login })
    });
    event.receivers = (lists != Receivers::default()).then(|| Box::new(lists));
    Some(())
}

/// A serializer's letter in the file.
fn letter(serializer: Serializer) -> u8 {
    match serializer {
        Serializer::Json => b'j',
        Serializer::MsgPack => b'm',
        Serializer::Cbor => b'c',
    }
}

fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (checksum, rest) = bytes.split_first_chunk::<CHECKSUM_BYTES>()?;
    (crc32fast::hash(rest) == u32::from_le_bytes(*checksum)).then_some(rest)
}

/// With its length, which is that of a message's part: 32 bits hold it.
fn write(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn read<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(*take(rest)?);
    let (bytes, after) = rest.split_at_checked(length as usize)?;
    *rest = after;
    Some(bytes)
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (bytes, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(publication: u64) -> Recorded {
        Recorded {
            publication: PublicationId(publication),
            unix_us: 1_000 + publication,
            publisher: None,
            topic: "com.kept".into(),
            receivers: None,
            passthru: None,
            serializer: Serializer::Json,
            payload: b"[1]{}".as_slice().into(),
            args_bytes: 3,
        }
    }

    fn full() -> Recorded {
        Recorded {
            publisher: Some((
                SessionId(9),
                Identity::new("joe", "user", "wampcra", "static"),
            )),
            topic: "com.other".into(),
            receivers: Some(Box::new(Receivers {
                exclude: Some(vec![SessionId(7)]),
                exclude_authid: Some(vec!["eve".to_owned()]),
                eligible_authrole: Some(Vec::new()),
                ..Receivers::default()
            })),
            passthru: Some(Box::new(vec![("x_a".to_owned(), Value::from(1_u64))])),
            serializer: Serializer::Cbor,
            ..event(2)
        }
    }

    fn written(events: &[Recorded]) -> (Vec<u8>, Vec<u8>) {
        let mut chunk = Chunk::default();
        for event in events {
            chunk.push(event, Some("com.kept"));
        }
        let (ids, body) = chunk.finish();
        (ids.to_vec(), body.to_vec())
    }

    #[test]
    fn written_events_are_read() {
        let all = [event(1), full(), event(3)];
        let (ids, body) = written(&all);
        assert_eq!(events(&ids, &body, "com.kept"), Some(all.to_vec()));
        let found: Vec<_> = publications(&ids).expect("is whole").collect();
        assert_eq!(found, [1, 2, 3].map(PublicationId));
    }

    #[test]
    fn any_changed_byte_is_noticed() {
        let (ids, body) = written(&[event(1), full()]);
        for place in 0..body.len() {
            let mut changed = body.clone();
            changed[place] ^= 1;
            assert_eq!(events(&ids, &changed, "com.kept"), None, "at {place}");
            assert_eq!(events(&ids, &body[..place], "com.kept"), None);
        }
        for place in 0..ids.len() {
            let mut changed = ids.clone();
            changed[place] ^= 1;
            assert!(publications(&changed).is_none(), "at {place}");
        }
    }

    #[test]
    fn bytes_with_a_right_checksum_that_mean_nothing() {
        let (ids, body) = written(&[full()]);
        for place in CHECKSUM_BYTES..body.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = body.clone();
                changed[place] = value;
                let checksum = crc32fast::hash(&changed[CHECKSUM_BYTES..]);
                changed[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
                // Decoding ends with any result.
                let _ = events(&ids, &changed, "com.kept");
            }
        }
    }
}
