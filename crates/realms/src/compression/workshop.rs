//! The compressors of a thread, and the messages that it compressed last: a message is compressed once for all
//! receivers with the same history.
//!
//! Without context takeover, all histories are empty. With it, the subscribers of a topic soon have the same history:
//! the same events. One that was sent something else meanwhile has a history of its own. If such a receiver gets a
//! message that was just compressed for another, its history is given up: it gets the form that refers to nothing, and
//! so do all others like it, whose histories are equal from then on. So one message is compressed at most
//! [`COMMON_MAX`] + 2 times for each set of parameters, however many receivers it has.

use std::collections::hash_map::{Entry, RandomState};
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use crosstie_transport::{Account, Kept, now_s};
use crosstie_wamp::framing::websocket::{Compressor, Opcode, Parameters, raw_frame};
use parking_lot::Mutex;

use super::{Mark, UNUSED_S_MAX};

/// The state of one thread. Counted on the account as kept.
#[derive(Default)]
pub(super) struct Workshop {
    hasher: RandomState,
    /// The one used last is at the end.
    streams: Vec<Stream>,
    pub(super) recent: HashMap<u64, Recent>,
    /// The keys of `recent`, oldest first.
    pub(super) order: VecDeque<u64>,
    pub(super) recent_bytes: usize,
    kept: Option<Kept>,
    used_at_s: u32,
}

/// A message to compress.
#[derive(Clone, Copy)]
pub(super) struct Message<'m> {
    pub(super) opcode: Opcode,
    pub(super) payload: &'m [u8],
}

/// A receiver, as its history.
#[derive(Clone, Copy)]
pub(super) struct Receiver<'h> {
    pub(super) mark: Mark,
    pub(super) history: &'h [u8],
}

/// A compressed message.
pub(super) struct Made {
    pub(super) frame: Bytes,
    /// Of the receiver's history with the message.
    pub(super) mark: Mark,
    /// It refers to nothing: the receiver's history begins with it.
    pub(super) is_fresh: bool,
}

struct Stream {
    compressor: Compressor,
    /// The history that its next message may refer to, if the compressor goes on. 0: none.
    at: u64,
}

/// A message that was compressed lately.
pub(super) struct Recent {
    opcode: Opcode,
    payload: Box<[u8]>,
    pub(super) variants: Vec<Variant>,
}

pub(super) struct Variant {
    parameters: Parameters,
    /// The numbers of the histories before and after the message.
    before: u64,
    after: u64,
    frame: Bytes,
}

/// Common histories that a message is compressed after. More are given up.
pub(super) const COMMON_MAX: usize = 4;

/// Maximum number of compressors per thread. There is one per set of parameters, some 300 KiB each.
const STREAMS_MAX: usize = 4;

/// Maximum number of recent messages per thread, and of their bytes. A single message may have more. A publisher's turn
/// is sent to one receiver after the other: for the next one, all messages of the turn are recent.
pub(super) const RECENT_MAX: usize = 1024;
pub(super) const RECENT_BYTES_MAX: usize = 4 << 20;

/// About what a recent message and a compressed form of it take besides their bytes.
const MESSAGE_BYTES: usize = 160;
const VARIANT_BYTES: usize = 96;

/// A shorter frame is on no account of its own (`Account::share`).
const SHARED_BYTES_MIN: usize = 1024;

/// Bytes at a message's ends by which recent messages are found. An event's publication is among them.
const FRONT_BYTES: usize = 64;
const BACK_BYTES: usize = 16;

static NUMBER_LAST: AtomicU64 = AtomicU64::new(0);

impl Workshop {
    /// Compresses `message`, or finds its compressed form. `None`: there is no memory for it.
    pub(super) fn compress(
        &mut self,
        message: Message<'_>,
        parameters: Parameters,
        receiver: Receiver<'_>,
        account: &Arc<Account>,
    ) -> Option<Made> {
        self.used_at_s = now_s();
        let key = self.key(message);
        let mut before = receiver.mark.number;
        let mut is_common = false;
        if let Some(recent) = self.recent.get(&key)
            && recent.is(message)
        {
            is_common = true;
            let of = |before| move |v: &&Variant| v.parameters == parameters && v.before == before;
            let mut found = recent.variants.iter().find(of(before));
            if found.is_none() {
                let after_others = recent.variants.iter();
                let after_others = after_others
                    .filter(|v| v.parameters == parameters && v.before != 0)
                    .count();
                if !receiver.mark.is_common || after_others > COMMON_MAX {
                    before = 0;
                    found = recent.variants.iter().find(of(before));
                }
            }
            if let Some(variant) = found {
                return Some(variant.made(true));
            }
        }
        let history = if before == 0 { &[] } else { receiver.history };
        let after = NUMBER_LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let frame = self.frame(message, parameters, (before, history), after)?;
        let variant = Variant {
            parameters,
            before,
            after,
            frame: account.share(frame),
        };
        let made = variant.made(is_common);
        self.remember(key, message, variant, account);
        Some(made)
    }

    /// Compresses `message` after a history, which then has the number `after`.
    fn frame(
        &mut self,
        message: Message<'_>,
        parameters: Parameters,
        (before, history): (u64, &[u8]),
        after: u64,
    ) -> Option<Vec<u8>> {
        let stream = self.stream(parameters);
        if before == 0 || stream.at != before {
            stream.compressor.begin(history);
        }
        let mut payload = Vec::new();
        let done = stream.compressor.compress(message.payload, &mut payload);
        stream.at = if done.is_ok() { after } else { 0 };
        done.ok()?;
        let mut frame = Vec::with_capacity(payload.len() + 10);
        raw_frame(message.opcode, true, true, None, &payload, &mut frame);
        Some(frame)
    }

    /// The compressor for these parameters, at the end of the list.
    fn stream(&mut self, parameters: Parameters) -> &mut Stream {
        let mut streams = self.streams.iter();
        let place = streams.position(|stream| stream.compressor.parameters() == parameters);
        let stream = match place {
            Some(place) => self.streams.remove(place),
            None => {
                if self.streams.len() >= STREAMS_MAX {
                    self.streams.remove(0);
                }
                Stream {
                    compressor: Compressor::new(parameters),
                    at: 0,
                }
            }
        };
        self.streams.push(stream);
        let last = self.streams.len() - 1;
        &mut self.streams[last]
    }

    /// Keeps a compressed form for other receivers, unless memory is short.
    fn remember(
        &mut self,
        key: u64,
        message: Message<'_>,
        variant: Variant,
        account: &Arc<Account>,
    ) {
        if account.is_tight() {
            self.forget_recent();
            return self.tell(account);
        }
        self.recent_bytes += variant.bytes();
        match self.recent.entry(key) {
            Entry::Occupied(known) if known.get().is(message) => {
                known.into_mut().variants.push(variant);
            }
            Entry::Occupied(mut other) => {
                let recent = Recent::new(message, variant);
                self.recent_bytes += recent.own_bytes();
                self.recent_bytes -= other.insert(recent).bytes();
            }
            Entry::Vacant(place) => {
                let recent = place.insert(Recent::new(message, variant));
                self.recent_bytes += recent.own_bytes();
                self.order.push_back(key);
            }
        }
        while (self.order.len() > RECENT_MAX || self.recent_bytes > RECENT_BYTES_MAX)
            && self.order.len() > 1
            && let Some(oldest) = self.order.pop_front()
            && let Some(dropped) = self.recent.remove(&oldest)
        {
            self.recent_bytes -= dropped.bytes();
        }
        self.tell(account);
    }

    /// Puts what is held on `account`.
    fn tell(&mut self, account: &Arc<Account>) {
        let streams = self.streams.iter();
        let streams: usize = streams.map(|stream| stream.compressor.held_bytes()).sum();
        let is_same = self.kept.as_ref().is_some_and(|kept| kept.is_on(account));
        if !is_same {
            self.kept = Some(Kept::new(account));
        }
        if let Some(kept) = &self.kept {
            kept.set(streams + self.recent_bytes);
        }
    }

    fn forget_recent(&mut self) {
        self.recent = HashMap::new();
        self.order = VecDeque::new();
        self.recent_bytes = 0;
    }

    pub(super) fn forget(&mut self) {
        self.forget_recent();
        self.streams = Vec::new();
        self.kept = None;
    }

    fn key(&self, message: Message<'_>) -> u64 {
        let payload = message.payload;
        let front = &payload[..payload.len().min(FRONT_BYTES)];
        let back = &payload[payload.len().saturating_sub(BACK_BYTES)..];
        self.hasher
            .hash_one((message.opcode, payload.len(), front, back))
    }
}

impl Recent {
    fn new(message: Message<'_>, variant: Variant) -> Self {
        Self {
            opcode: message.opcode,
            payload: message.payload.into(),
            variants: vec![variant],
        }
    }

    fn is(&self, message: Message<'_>) -> bool {
        self.opcode == message.opcode && *self.payload == *message.payload
    }

    fn own_bytes(&self) -> usize {
        self.payload.len() + MESSAGE_BYTES
    }

    pub(super) fn bytes(&self) -> usize {
        let variants = self.variants.iter().map(Variant::bytes);
        self.own_bytes() + variants.sum::<usize>()
    }
}

impl Variant {
    fn made(&self, is_common: bool) -> Made {
        let mark = Mark {
            number: self.after,
            is_common,
        };
        Made {
            frame: self.frame.clone(),
            mark,
            is_fresh: self.before == 0,
        }
    }

    fn bytes(&self) -> usize {
        let own = self.frame.len();
        VARIANT_BYTES + if own < SHARED_BYTES_MIN { own } else { 0 }
    }
}

/// The workshops of all threads, so that a sweep can empty them.
static ALL: Mutex<Vec<Weak<Mutex<Workshop>>>> = Mutex::new(Vec::new());

/// Open filters. Without any the workshops are emptied.
static OPEN: AtomicUsize = AtomicUsize::new(0);

static SWEPT_AT_S: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static OWN: Arc<Mutex<Workshop>> = {
        let own = Arc::new(Mutex::new(Workshop::default()));
        let mut all = ALL.lock();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&own));
        own
    };
}

/// Calls `work` with this thread's workshop.
pub(super) fn with<R>(work: impl FnOnce(&mut Workshop) -> R) -> R {
    OWN.with(|own| work(&mut own.lock()))
}

pub(super) fn note_opened() {
    OPEN.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn note_closed() {
    if OPEN.fetch_sub(1, Ordering::Relaxed) == 1 {
        empty(|_| true);
    }
}

/// Empties the workshops that were not used for long. Returns at once most times.
pub(super) fn sweep(now_s: u32) {
    let swept_at_s = SWEPT_AT_S.load(Ordering::Relaxed);
    if now_s.saturating_sub(swept_at_s) >= UNUSED_S_MAX / 4 {
        SWEPT_AT_S.store(now_s, Ordering::Relaxed);
        empty(|workshop| now_s.saturating_sub(workshop.used_at_s) >= UNUSED_S_MAX);
    }
}

/// Empties the workshops for which `is_due`; one that is at work is not.
fn empty(is_due: impl Fn(&Workshop) -> bool) {
    let all: Vec<_> = ALL.lock().iter().filter_map(Weak::upgrade).collect();
    for workshop in all {
        if let Some(mut workshop) = workshop.try_lock()
            && is_due(&workshop)
        {
            workshop.forget();
        }
    }
}
