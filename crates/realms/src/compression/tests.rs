//! Inflated messages of receivers, compressions per message, and held bytes.

use crosstie_transport::Kind;
use crosstie_wamp::framing::Item;
use crosstie_wamp::framing::websocket::{Decoder, DecoderConfig, DeflateConfig, Opcode, Role};

use super::*;

/// The router's side of a connection, and the client that inflates.
struct Receiver {
    history: History,
    client: Decoder,
}

const TAKEOVER: DeflateConfig = DeflateConfig {
    no_context_takeover: false,
    window_bits_max: 15,
    peer_no_context_takeover: false,
    peer_window_bits_max: 15,
    level: 6,
    memory_level: 8,
};

const APART: DeflateConfig = DeflateConfig {
    no_context_takeover: true,
    ..TAKEOVER
};

impl Receiver {
    fn new(config: &DeflateConfig) -> Self {
        let offer = config.offer();
        let (server, answer) = config.accept(&[&offer]).expect("good").expect("acceptable");
        let client = DecoderConfig {
            deflate: config.agree(&[&answer]).expect("good"),
            ..DecoderConfig::default()
        };
        Self {
            history: History::new(&server),
            client: Decoder::new(Role::Client, client),
        }
    }

    /// Compresses a message and inflates it again; returns its frame.
    #[track_caller]
    fn get(&mut self, message: &[u8], workshop: &mut Workshop, account: &Arc<Account>) -> Bytes {
        let message = Message {
            opcode: Opcode::Binary,
            payload: message,
        };
        let frame = self.history.compress(message, workshop, account);
        let frame = frame.expect("memory");
        let mut input = frame.to_vec();
        let step = self.client.next(&mut input).expect("well-formed");
        assert_eq!(step.consumed, frame.len());
        let Some(Item::Message { bytes, .. }) = step.item else {
            panic!("no message");
        };
        assert!(bytes == message.payload, "inflated to something else");
        frame
    }
}

fn account(bytes_max: usize) -> Arc<Account> {
    Arc::new(Account::new(bytes_max))
}

/// Text of so many bytes, like that of other numbers.
fn event(number: usize, length: usize) -> Vec<u8> {
    let mut text = format!("[36,1,{number},{{}},[");
    let mut seed = number as u32 + 1;
    while text.len() < length {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let state = ["open", "closed", "unknown"][(seed >> 30) as usize % 3];
        text += &format!(
            "{{\"sensor\":\"room {}\",\"state\":\"{state}\"}},",
            seed >> 27
        );
    }
    text.truncate(length);
    text.into_bytes()
}

/// Bytes that do not compress.
fn noise(number: u32, length: usize) -> Vec<u8> {
    let mut seed = number;
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn is_same(one: &Bytes, other: &Bytes) -> bool {
    one.as_ptr() == other.as_ptr() && one.len() == other.len()
}

#[test]
fn without_takeover_one_frame_serves_all_receivers_and_is_held_once() {
    let account = account(1 << 30);
    let mut workshop = Workshop::default();
    for length in [64, 1000, 5000, 3_000_000] {
        let message = noise(1, length);
        let before = account.bytes(Kind::Shared);
        let mut frames = Vec::new();
        for _ in 0..20 {
            let mut receiver = Receiver::new(&APART);
            frames.push(receiver.get(&message, &mut workshop, &account));
            assert_eq!(receiver.history.bytes.capacity(), 0);
        }
        assert!(frames.iter().all(|frame| is_same(frame, &frames[0])));
        let held = account.bytes(Kind::Shared) - before;
        assert!(held <= 2 * frames[0].len(), "{held} bytes");
    }
}

#[test]
fn receivers_with_different_windows_get_frames_of_their_own() {
    let account = account(1 << 30);
    let mut workshop = Workshop::default();
    let narrow = DeflateConfig {
        window_bits_max: 9,
        ..APART
    };
    let mut receivers = [&APART, &narrow, &APART, &narrow].map(Receiver::new);
    let message = event(1, 20_000);
    let frames = receivers
        .each_mut()
        .map(|receiver| receiver.get(&message, &mut workshop, &account));
    assert!(is_same(&frames[0], &frames[2]) && is_same(&frames[1], &frames[3]));
    assert!(frames[0].len() < frames[1].len());
}

#[test]
fn receivers_of_the_same_events_come_to_share_one_history() {
    let account = account(1 << 30);
    let mut workshop = Workshop::default();
    let mut receivers: Vec<_> = (0..50).map(|_| Receiver::new(&TAKEOVER)).collect();
    let mut lengths = Vec::new();
    for number in 0..6 {
        for (index, receiver) in receivers.iter_mut().enumerate() {
            // Before the first event and the fourth, each receives something of its own.
            if number % 3 == 0 {
                let own = noise((number * 100 + index) as u32, 100);
                receiver.get(&own, &mut workshop, &account);
            }
        }
        let message = event(number, 1000);
        let mut frames = receivers
            .iter_mut()
            .map(|receiver| receiver.get(&message, &mut workshop, &account));
        let _first = frames.next();
        let frames: Vec<_> = frames.collect();
        assert!(
            frames.iter().all(|frame| is_same(frame, &frames[0])),
            "event {number}"
        );
        lengths.push(frames[0].len());
    }
    // An event after others of its kind is shorter than one that refers to nothing.
    for (fresh, later) in [(0, 1), (0, 2), (3, 4), (3, 5)] {
        assert!(lengths[later] * 10 < lengths[fresh] * 8, "{lengths:?}");
    }
    assert!(
        receivers
            .iter()
            .all(|receiver| receiver.history.bytes.capacity() <= HISTORY_BYTES_MAX)
    );
}

/// Receivers of all kinds get shared messages and their own ones in a random order, and forget at random times.
#[test]
fn every_receiver_inflates_what_was_meant_for_it() {
    let narrow = DeflateConfig {
        window_bits_max: 9,
        memory_level: 1,
        ..TAKEOVER
    };
    for seed in 1..20_u32 {
        let account = account(1 << 30);
        let mut workshops = [Workshop::default(), Workshop::default()];
        let mut receivers: Vec<_> = [&TAKEOVER, &APART, &narrow]
            .into_iter()
            .flat_map(|config| (0..6).map(|_| Receiver::new(config)))
            .collect();
        let mut state = seed;
        let mut below = |bound: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % bound
        };
        for number in 0..60 {
            let length = [64, 300, 1000, 5000, 40_000][below(5)];
            let message = event(number, length);
            let workshop = &mut workshops[below(2)];
            let (kind, part) = (below(4), below(3));
            for receiver in &mut receivers {
                match kind {
                    0 => {
                        let own = event(1000 + below(1000), 200);
                        receiver.get(&own, workshop, &account);
                    }
                    1 if below(2) == 0 => receiver.history.forget(),
                    2 if below(3) == part => {}
                    _ => {
                        receiver.get(&message, workshop, &account);
                    }
                }
            }
            if below(10) == 0 {
                workshop.forget();
            }
            for recent in workshop.recent.values() {
                // Three sets of parameters, of which two have histories.
                assert!(recent.variants.len() <= 2 * (workshop::COMMON_MAX + 2) + 1);
            }
        }
    }
}

#[test]
fn a_workshop_is_bounded_and_on_the_account() {
    let account = account(1 << 30);
    let mut workshop = Workshop::default();
    let mut receiver = Receiver::new(&TAKEOVER);
    for number in 0..3000 {
        receiver.get(&event(number, 3000), &mut workshop, &account);
        assert!(workshop.recent.len() <= workshop::RECENT_MAX);
        assert_eq!(workshop.recent.len(), workshop.order.len());
        let bytes: usize = workshop.recent.values().map(|recent| recent.bytes()).sum();
        assert_eq!(workshop.recent_bytes, bytes);
        assert!(bytes <= workshop::RECENT_BYTES_MAX);
        assert!(account.bytes(Kind::Kept) > bytes);
    }
    workshop.forget();
    assert_eq!(account.total_bytes(), 0);
}

#[test]
fn nothing_is_remembered_while_memory_is_short() {
    let account = account(1 << 20);
    let mut workshop = Workshop::default();
    let mut receiver = Receiver::new(&TAKEOVER);
    receiver.get(&event(1, 1000), &mut workshop, &account);
    assert!(!receiver.history.bytes.is_empty());
    let much = account.share(vec![0; 1 << 20]);
    receiver.get(&event(2, 1000), &mut workshop, &account);
    assert_eq!(receiver.history.bytes.capacity(), 0);
    assert!(workshop.recent.is_empty());
    drop(much);
    receiver.get(&event(3, 1000), &mut workshop, &account);
    assert!(!receiver.history.bytes.is_empty());
    workshop.forget();
}

#[test]
fn a_filter_gives_up_its_history_when_asked_or_unused() {
    let config = TAKEOVER;
    let (deflate, _) = config
        .accept(&["permessage-deflate"])
        .expect("good")
        .expect("acceptable");
    let account = account(1 << 30);
    let mut filter = CompressFilter::new(deflate, &account);
    let use_it = |filter: &mut CompressFilter| {
        let payload = event(1, 1000);
        let message = Message {
            opcode: Opcode::Text,
            payload: &payload,
        };
        let mut workshop = Workshop::default();
        filter.used_at_s = 1000;
        assert!(
            filter
                .history
                .compress(message, &mut workshop, &account)
                .is_some()
        );
        assert_eq!(filter.take_growth(), 1024);
        assert_eq!(filter.take_growth(), 0);
    };
    use_it(&mut filter);
    filter.give_up();
    assert_eq!(filter.take_growth(), -1024);
    use_it(&mut filter);
    filter.give_up_unused(1000 + UNUSED_S_MAX - 1);
    assert_eq!(filter.take_growth(), 0);
    filter.give_up_unused(1000 + UNUSED_S_MAX);
    assert_eq!(filter.take_growth(), -1024);
}
