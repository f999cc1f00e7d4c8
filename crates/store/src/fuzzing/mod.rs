//! The decoders of a store's files with their invariants, for fuzzing: each function panics if one does not hold.
//!
//! Random bytes have no right checksum, so that most inputs would end there. If a format has one, the input is read as
//! it is, and again with the checksum mended.

mod files;
mod seeds;

pub use seeds::seeds;

use std::path::Path;

use self::files::{File, Files, STORE, mended, records_mended};
use crate::archive;
use crate::gather::Gathered;
use crate::segments::bytes::Cursor;
use crate::segments::contents::Snapshot;
use crate::segments::entity::{self, Entity};
use crate::segments::head;
use crate::segments::index::{self, Left};
use crate::segments::manifest::Manifest;
use crate::segments::message;
use crate::segments::places::PlaceSet;
use crate::segments::record::{HEADER_BYTES, Header, Salt};
use crate::segments::recover::recover;
use crate::segments::scan::{Bounds, scan};
use crate::segments::segment::SegmentHead;
use crate::segments::state::State;

/// The header of a record. A decoded one is the same after encoding, and with any one bit wrong.
pub fn record(input: &[u8]) {
    let Some(bytes) = input.first_chunk::<HEADER_BYTES>() else {
        return;
    };
    let salt = Salt::of(STORE);
    for bytes in [*bytes, salt.mended(bytes)] {
        let _ = Header::repair(&bytes, salt);
        if let Some(header) = Header::decode(&bytes, salt) {
            assert_eq!(Header::decode(&header.encode(salt), salt), Some(header));
            assert!(header.commit_start() <= header.sequence);
            assert!(header.record_bytes() >= HEADER_BYTES as u64 + u64::from(header.payload_bytes));
            let bit = usize::from(input[0]) * 3 % (HEADER_BYTES * 8);
            let mut wrong = header.encode(salt);
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::repair(&wrong, salt), Some(header));
        }
    }
}

/// The heads of a segment and of a store.
pub fn heads(input: &[u8]) {
    for bytes in [input.to_vec(), mended(input, 8, 12..32)] {
        if let Some(head) = SegmentHead::decode(&bytes) {
            assert_eq!(SegmentHead::decode(&head.encode()), Some(head));
        }
    }
    for bytes in [input.to_vec(), mended(input, 0, 4..20)] {
        let slots = [&bytes[..], bytes.get(4096..).unwrap_or_default()];
        let right = slots.iter().filter(|slot| head::decode(slot).is_some());
        let right = right.count();
        assert!(head::damaged_slots(&bytes) + right <= 2);
    }
}

/// A manifest. A decoded one is the same after encoding, also if one of its copies is cut off.
pub fn manifest(input: &[u8]) {
    for bytes in [input.to_vec(), mended(input, 8, 12..input.len())] {
        if let Some(manifest) = Manifest::decode(&bytes) {
            assert!(manifest.segments.len() + manifest.accepted.len() <= bytes.len());
            let again = manifest.encode();
            for cut in [0, again.len() / 3] {
                let decoded = Manifest::decode(&again[..again.len() - cut]);
                assert_eq!(decoded.as_ref(), Some(&manifest));
            }
        }
    }
}

/// An index. A decoded one is the same after encoding.
pub fn index(input: &[u8]) {
    for bytes in [input.to_vec(), index::mended(input)] {
        if let Some((summary, index)) = index::decode(&bytes) {
            let again = index::encode(&summary, &index);
            assert_eq!(index::decode(&again), Some((summary.clone(), index)));
            let mut state = State::default();
            state.add_summary(summary, bytes.len() as u64);
            state.free();
        }
    }
}

/// A message's payload, the payload of an entity, and those of acknowledgements.
pub fn payload(input: &[u8]) {
    if let Some(message) = message::decode(input) {
        let mut again = Vec::new();
        let shared_at = match message.content {
            message::Content::At { offset, .. } => Some(offset),
            message::Content::Here { .. } => None,
        };
        message.encode_moved(message.deliveries, &message.content, shared_at, &mut again);
        assert_eq!(message::decode(&again), Some(message));
    }
    if let Some(decoded) = entity::decode(input) {
        let mut again = Vec::new();
        match &decoded {
            Entity::Vhost { number, name } => entity::encode_vhost(*number, name, &mut again),
            Entity::Declared { vhost, record } => entity::encode(*vhost, record, &mut again),
            Entity::Setting { key, value } => entity::encode_setting(key, value, &mut again),
        }
        assert_eq!(entity::decode(&again), Some(decoded));
    }
    let places_max = 10_000;
    if let Some(places) = PlaceSet::decode(&mut Cursor::new(input), places_max) {
        assert!(places.len() <= places_max && places.iter().count() == places.len());
        let mut again = Vec::new();
        places.encode(&mut again);
        let decoded = PlaceSet::decode(&mut Cursor::new(&again), places_max);
        assert_eq!(decoded, Some(places));
    }
    if let Some(left) = Left::decode(&mut Cursor::new(input), places_max) {
        let mut again = Vec::new();
        left.encode(&mut again);
        assert_eq!(
            Left::decode(&mut Cursor::new(&again), places_max),
            Some(left)
        );
    }
}

/// A segment's records. They come in their order, and no record is both there and missing. The first byte says what
/// else is known: where the next segment begins, and what was confirmed.
pub fn segment(input: &[u8]) {
    let Some((known, input)) = input.split_first() else {
        return;
    };
    let file = File(records_mended(input).into());
    let bounds = Bounds {
        first_sequence: 1,
        end_sequence: (known & 1 != 0).then_some(u64::from(known >> 4)),
        confirmed: u64::from(known >> 1 & 7),
        salt: Salt::of(STORE),
    };
    let mut found = Vec::new();
    let scanned = scan(&file, bounds, &mut |record| {
        found.push((record.header.sequence, record.offset));
    });
    let scanned = scanned.expect("a file in memory");
    assert!(found.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
    assert!(scanned.gaps.is_sorted_by(|a, b| a.1 < b.0));
    for (from, to) in &scanned.gaps {
        assert!(from <= to);
        assert!(
            found
                .iter()
                .all(|(sequence, _)| !(*from..=*to).contains(sequence))
        );
    }
    let last = found.last().map_or(0, |(sequence, _)| *sequence);
    assert!(last < scanned.next_sequence || bounds.end_sequence.is_some());
}

/// A store of several files: it is recovered, and read, whatever it has.
pub fn store(input: &[u8]) {
    let disk = Files::parse(input);
    let recovered = recover(&disk).expect("a disk in memory");
    let mut gathered = Gathered::default();
    let (mut whole, mut lost) = (0, 0);
    for part in Snapshot::all(&recovered.state).parts {
        part.visit(
            &disk,
            recovered.manifest.store,
            &mut |queue, place, item| {
                gathered.add(queue, place, item.clone());
                match item {
                    crate::segments::contents::Item::Message(None) => lost += 1,
                    _ => whole += 1,
                }
                Ok(())
            },
        )
        .expect("a disk in memory");
    }
    let counted: usize = recovered
        .state
        .queues
        .values()
        .map(|queue| queue.count)
        .sum();
    assert_eq!(counted, whole + lost);
    let _ = gathered.into_restored();
    let mut state = recovered.state;
    let keys: Vec<_> = state.queues.keys().copied().collect();
    let last = state.segments.keys().next_back().copied().unwrap_or(0);
    for key in keys {
        state.clear(last, key, (i64::MIN, i64::MAX));
    }
    assert!(state.queues.values().all(|queue| queue.count == 0));
    assert!(state.segments.values().all(|segment| segment.live == 0));
}

/// A backup.
pub fn backup(input: &[u8]) {
    let mut bytes = mended(input, 8, 12..44);
    let from = bytes.len().min(64);
    let records = archive::records_mended(&bytes, &bytes[from..]);
    bytes.truncate(from);
    bytes.extend_from_slice(&records);
    for bytes in [input.to_vec(), bytes] {
        let mut records = 0;
        let file = File(bytes.into());
        let surveyed = archive::survey_file(&file, Path::new("a"), &mut |_, _, _| {
            records += 1;
            Ok(())
        });
        if let Ok(surveyed) = surveyed {
            assert_eq!(surveyed.records, records);
        }
    }
}
