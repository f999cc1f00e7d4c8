//! Messages between the realms of two nodes, as frames.
//!
//! A call, its continuation, its cancellation and its results are the messages of clients and routers, with their
//! arguments as received. The code that checks clients' messages checks these, too.

use crosstie_routing::{
    Called, Crossing, EndTold, Journey, LISTED_MAX, Listed, Offer, Pattern, Resource, Stretch,
};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{
    InvocationPolicy, MatchPolicy, Message, MessageType, Payload, Serializer, SessionId,
};

use crate::event;
use crate::fields::{self, Field, Fields};
use crate::{Frame, Head, Kind, Refusal};

/// An input from another node's realm.
#[derive(Debug)]
pub struct Came<'f> {
    kind: Kind,
    registration: Option<Pattern<'f>>,
    journey: Option<Box<Journey<'f>>>,
    listed: Vec<Listed>,
    message: Option<Message<'f>>,
    policy: Option<InvocationPolicy>,
    part: [u64; 4],
    number: u64,
    told: EndTold,
}

/// Maximum number of nodes that a call lists as tried; a longer list is cut off.
const TRIED_MAX: usize = 16;

impl Came<'_> {
    /// The input for a realm; `None` if a field that its kind requires is missing.
    pub fn crossing(&self) -> Option<Crossing<'_>> {
        let called = || {
            Some(Called {
                registration: self.registration?,
                journey: self.journey.as_deref()?,
                message: self.message.as_ref()?,
            })
        };
        Some(match self.kind {
            Kind::Call => Crossing::Call(called()?),
            Kind::Bounce => Crossing::Bounce(called()?),
            Kind::Continue => Crossing::Continue(self.message.as_ref()?),
            Kind::Cancel => Crossing::Cancel(self.message.as_ref()?),
            Kind::Result => Crossing::Result(self.message.as_ref()?),
            Kind::Error => Crossing::Error(self.message.as_ref()?),
            Kind::Offer => {
                let [callees, claim, first, last] = self.part;
                Crossing::Offer(Offer {
                    registration: self.registration?,
                    policy: self.policy?,
                    callees: u32::try_from(callees).unwrap_or(u32::MAX),
                    claim,
                    first,
                    last,
                    listed: &self.listed,
                })
            }
            Kind::Withdraw => Crossing::Withdraw(self.registration?, self.told),
            Kind::Revoke => Crossing::Revoke(self.registration?),
            Kind::Question => Crossing::Question(self.message.as_ref()?),
            Kind::Answer => Crossing::Answer(self.message.as_ref()?),
            Kind::Ask => Crossing::Ask(self.number),
            Kind::Known => Crossing::Known(self.number),
            _ => return None,
        })
    }

    /// The arguments of the input.
    pub fn payload(&self) -> Payload<'_> {
        let payload = self.message.as_ref().and_then(Message::payload);
        payload.copied().unwrap_or(Payload::EMPTY)
    }
}

/// The frame's kind, and the serializer of its contents.
pub(crate) fn kind(crossing: &Crossing<'_>) -> (Kind, Serializer) {
    let of = |message: &Message<'_>| {
        let payload = message.payload();
        payload.map_or(Serializer::Json, |payload| payload.serializer)
    };
    match crossing {
        Crossing::Call(called) => (Kind::Call, of(called.message)),
        Crossing::Bounce(called) => (Kind::Bounce, of(called.message)),
        Crossing::Continue(message) => (Kind::Continue, of(message)),
        Crossing::Cancel(message) => (Kind::Cancel, of(message)),
        Crossing::Result(message) => (Kind::Result, of(message)),
        Crossing::Error(message) => (Kind::Error, of(message)),
        Crossing::Question(message) => (Kind::Question, of(message)),
        Crossing::Answer(message) => (Kind::Answer, of(message)),
        Crossing::Offer(_) => (Kind::Offer, Serializer::Json),
        Crossing::Withdraw(..) => (Kind::Withdraw, Serializer::Json),
        Crossing::Revoke(_) => (Kind::Revoke, Serializer::Json),
        Crossing::Ask(_) => (Kind::Ask, Serializer::Json),
        Crossing::Known(_) => (Kind::Known, Serializer::Json),
    }
}

/// Appends the frame for the receiver's side of that number.
pub fn write(head: &Head, pair: u64, crossing: &Crossing<'_>, out: &mut Vec<u8>) {
    head.write(out);
    fields::put(Field::Pair, &pair.to_be_bytes(), out);
    let message = match crossing {
        Crossing::Call(called) | Crossing::Bounce(called) => {
            put_pattern(called.registration, out);
            put_journey(called.journey, out);
            Some(called.message)
        }
        Crossing::Continue(message)
        | Crossing::Cancel(message)
        | Crossing::Result(message)
        | Crossing::Error(message)
        | Crossing::Question(message)
        | Crossing::Answer(message) => Some(*message),
        Crossing::Offer(offer) => {
            put_pattern(offer.registration, out);
            let policy = place(&InvocationPolicy::ALL, offer.policy);
            fields::put(Field::Policy, &[policy], out);
            let part = [
                u64::from(offer.callees),
                offer.claim,
                offer.first,
                offer.last,
            ];
            let part: Vec<_> = part
                .iter()
                .flat_map(|number| number.to_be_bytes())
                .collect();
            fields::put(Field::Part, &part, out);
            let listed = offer.listed.iter();
            put_numbers(
                Field::Listed,
                listed.flat_map(|callee| [callee.number, callee.shard]),
                out,
            );
            None
        }
        Crossing::Withdraw(pattern, told) => {
            put_pattern(*pattern, out);
            // No session has the number 0.
            let untold = match told {
                EndTold::Yes => None,
                EndTold::No(session) => Some(session.0),
                EndTold::NothingBegun => Some(0),
            };
            if let Some(untold) = untold {
                fields::put(Field::Untold, &untold.to_be_bytes(), out);
            }
            None
        }
        Crossing::Revoke(pattern) => {
            put_pattern(*pattern, out);
            None
        }
        Crossing::Ask(number) | Crossing::Known(number) => {
            fields::put(Field::Number, &number.to_be_bytes(), out);
            None
        }
    };
    fields::end(out);
    if let Some(message) = message {
        let payload = message.payload().copied().unwrap_or(Payload::EMPTY);
        codec::encode_with(message, &payload, out);
    }
}

/// Decodes the contents of a pair's frame.
pub fn read<'f>(frame: &Frame<'f>) -> Result<Came<'f>, Refusal> {
    let fields = &frame.fields;
    let kind = frame.head.kind;
    let mut came = Came {
        kind,
        registration: None,
        journey: None,
        listed: Vec::new(),
        message: None,
        policy: None,
        part: [0; 4],
        number: 0,
        told: EndTold::Yes,
    };
    match kind {
        Kind::Call | Kind::Bounce => {
            came.registration = Some(pattern(fields)?);
            came.journey = Some(Box::new(journey(fields)?));
        }
        Kind::Offer => {
            came.registration = Some(pattern(fields)?);
            let policy = fields.octet(Field::Policy)?;
            came.policy = InvocationPolicy::ALL.get(usize::from(policy)).copied();
            let numbers = fields.numbers(Field::Part);
            for (number, found) in came.part.iter_mut().zip(numbers) {
                *number = found;
            }
            let listed: Vec<_> = fields.numbers(Field::Listed).take(2 * LISTED_MAX).collect();
            let (listed, _) = listed.as_chunks::<2>();
            let of = |[number, shard]: [u64; 2]| Listed { number, shard };
            came.listed = listed.iter().copied().map(of).collect();
        }
        Kind::Withdraw | Kind::Revoke => {
            came.registration = Some(pattern(fields)?);
            came.told = match fields.number(Field::Untold) {
                Err(_) => EndTold::Yes,
                Ok(0) => EndTold::NothingBegun,
                Ok(session) => EndTold::No(SessionId(session)),
            };
        }
        Kind::Ask | Kind::Known => came.number = fields.number(Field::Number)?,
        _ => {}
    }
    if is_message(kind) {
        let message = codec::decode(frame.head.serializer, frame.rest, &Limits::default());
        let message = message.map_err(|_| Refusal::Crossing)?;
        let is_its = match (kind, &message) {
            (Kind::Call | Kind::Bounce | Kind::Continue | Kind::Question, Message::Call { .. })
            | (Kind::Cancel, Message::Cancel { .. })
            | (Kind::Result | Kind::Answer, Message::Result { .. }) => true,
            (Kind::Error | Kind::Answer, Message::Error { request_type, .. }) => {
                *request_type == MessageType::Call
            }
            _ => false,
        };
        if !is_its {
            return Err(Refusal::Crossing);
        }
        came.message = Some(message);
    }
    match came.crossing() {
        Some(_) => Ok(came),
        None => Err(Refusal::Crossing),
    }
}

/// Whether a frame of that kind contains a message.
fn is_message(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Call
            | Kind::Bounce
            | Kind::Continue
            | Kind::Cancel
            | Kind::Result
            | Kind::Error
            | Kind::Question
            | Kind::Answer
    )
}

fn put_pattern(pattern: Pattern<'_>, out: &mut Vec<u8>) {
    let policy = place(&MatchPolicy::ALL, pattern.match_policy);
    fields::put(Field::Match, &[policy], out);
    fields::put(Field::Procedure, pattern.topic.as_bytes(), out);
}

fn pattern<'f>(fields: &Fields<'f>) -> Result<Pattern<'f>, Refusal> {
    let policy = fields.octet(Field::Match)?;
    let match_policy = MatchPolicy::ALL.get(usize::from(policy)).copied();
    Ok(Pattern {
        match_policy: match_policy.ok_or(Refusal::Field)?,
        topic: fields.text(Field::Procedure)?,
    })
}

fn put_journey(journey: &Journey<'_>, out: &mut Vec<u8>) {
    if let Some(caller) = &journey.caller {
        event::put_disclosed(caller, out);
    }
    put_numbers(Field::Tried, journey.tried.iter().copied(), out);
    put_numbers(Field::Gone, journey.gone.iter().copied(), out);
    if let Some(stretch) = journey.stretch {
        let resource = stretch.resource.map(|of| [of.rkey, of.shard]);
        let bounds = [stretch.low, stretch.high].into_iter();
        put_numbers(
            Field::Stretch,
            bounds.chain(resource.into_iter().flatten()),
            out,
        );
    }
    let met = [
        u64::from(journey.asked),
        u64::from(journey.is_busy),
        u64::from(journey.waits),
    ];
    if met != [0; 3] {
        put_numbers(Field::Met, met.into_iter(), out);
    }
}

fn journey<'f>(fields: &Fields<'f>) -> Result<Journey<'f>, Refusal> {
    let mut stretch = fields.numbers(Field::Stretch);
    let mut met = fields.numbers(Field::Met);
    let bounds = stretch.next().zip(stretch.next());
    let resource = stretch.next().zip(stretch.next());
    Ok(Journey {
        caller: event::disclosed(fields)?,
        tried: fields.numbers(Field::Tried).take(TRIED_MAX).collect(),
        gone: fields.numbers(Field::Gone).take(TRIED_MAX).collect(),
        stretch: bounds.map(|(low, high)| Stretch {
            low,
            high,
            resource: resource.map(|(rkey, shard)| Resource { rkey, shard }),
        }),
        asked: u32::try_from(met.next().unwrap_or(0)).unwrap_or(u32::MAX),
        is_busy: met.next() == Some(1),
        waits: met.next() == Some(1),
    })
}

/// Appends a list of numbers unless it is empty.
fn put_numbers(field: Field, numbers: impl Iterator<Item = u64>, out: &mut Vec<u8>) {
    let octets: Vec<_> = numbers.flat_map(u64::to_be_bytes).collect();
    if !octets.is_empty() {
        fields::put(field, &octets, out);
    }
}

/// The index of `one` in `all`.
fn place<T: PartialEq>(all: &[T], one: T) -> u8 {
    all.iter().position(|known| *known == one).unwrap_or(0) as u8
}
