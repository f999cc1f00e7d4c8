//! Examples, from which inputs are made.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_queues::{MessageContent, QueueId, Record, StoredMessage, Time};

use super::files::{HEAD, INDEX, MANIFEST, SEGMENT, STORE, files, mended};
use crate::archive;
use crate::segments::draft::Draft;
use crate::segments::entity;
use crate::segments::index::{self, Index, Left, RunSummary, Summary};
use crate::segments::manifest::{Listed, Manifest};
use crate::segments::message;
use crate::segments::record::{ENTITIES, HEADER_BYTES, QueueKey, Salt};
use crate::segments::segment::SegmentHead;
use crate::segments::state::{Size, State};

const ONE: QueueKey = QueueKey { vhost: 1, queue: 7 };
const TWO: QueueKey = QueueKey {
    vhost: 1,
    queue: 300,
};

/// Examples for each body, in the order: record, heads, manifest, index, payload, segment, store, backup.
pub fn seeds() -> [Vec<Vec<u8>>; 8] {
    let Records {
        bytes: records,
        offset,
        end_sequence,
    } = records();
    let head = SegmentHead {
        store: STORE,
        number: 1,
        first_sequence: 1,
    };
    let head = head.encode();
    let segment = [&head[..], &records].concat();
    let indexes = [index(1, 1, offset), index(2, 10, offset)];
    let manifest = manifest(end_sequence);
    let confirmed = [vec![0; 4], 9_u64.to_le_bytes().to_vec(), vec![1; 8]].concat();
    let confirmed = mended(&confirmed, 0, 4..20);
    let stores = vec![
        files(&[(SEGMENT, 1, &segment), (HEAD, 0, &confirmed)]),
        files(&[
            (SEGMENT, 1, &segment),
            (INDEX, 1, &indexes[0]),
            (INDEX, 2, &indexes[1]),
            (MANIFEST, 0, &manifest),
        ]),
        files(&[
            (SEGMENT, 2, &segment),
            (INDEX, 2, &indexes[1]),
            (MANIFEST, 0, &manifest),
            (HEAD, 0, &confirmed),
        ]),
    ];
    let second_slot = [vec![1; 4096], vec![7; 20]].concat();
    [
        records.chunks(HEADER_BYTES).map(<[u8]>::to_vec).collect(),
        vec![head.to_vec(), confirmed, second_slot],
        vec![manifest],
        indexes.to_vec(),
        payloads(),
        [0, 1, 0x31, 0xf1]
            .map(|known| [&[known], &segment[..]].concat())
            .to_vec(),
        stores,
        vec![archive::example(&records, end_sequence)],
    ]
}

fn long() -> StoredMessage {
    StoredMessage {
        content: Arc::new(MessageContent::new("x", "k", &[0, 0], &[8; 1100])),
        expires_at: Some(Time(1 << 40)),
        deliveries: 3,
    }
}

fn short() -> StoredMessage {
    StoredMessage::new(Arc::new(MessageContent::new("", "q", &[0, 0], b"body")))
}

fn entities() -> Vec<Vec<u8>> {
    let declared = Record::queue_declared(QueueId(7), "q", Default::default());
    let rested = Record::Rested {
        queue: QueueId(7),
        fresh_from: -1,
    };
    let setting = Record::Setting {
        key: "k".into(),
        value: Some("{}".into()),
    };
    let mut payloads = vec![Vec::new(); 5];
    entity::encode(1, &declared, &mut payloads[0]);
    entity::encode(1, &rested, &mut payloads[1]);
    entity::encode_vhost(1, "/", &mut payloads[2]);
    entity::encode_setting("[\"user\",\"x\"]", "{}", &mut payloads[3]);
    entity::encode(1, &setting, &mut payloads[4]);
    payloads
}

fn payloads() -> Vec<Vec<u8>> {
    let mut payloads = entities();
    // Sets of places.
    payloads.push(vec![1, 0, 9, 1]);
    payloads.push(vec![2, 3, 1, 2, 2, 1, 2, 9]);
    let (long, short) = (long(), short());
    for (message, at) in [(&long, None), (&long, Some(64)), (&short, None)] {
        let mut payload = Vec::new();
        message::encode(message, at, &mut payload);
        payloads.push(payload);
    }
    payloads
}

/// Two commits.
struct Records {
    bytes: Vec<u8>,
    /// Of the first message.
    offset: u32,
    end_sequence: u64,
}

fn records() -> Records {
    let salt = Salt::of(STORE);
    let state = State::default();
    let (long, short) = (long(), short());
    let mut first = Draft::begin((1, 64), 1, salt, Vec::new());
    for (place, payload) in (1..).zip(entities()) {
        first.store(ENTITIES, place, 0, |out| {
            out.extend_from_slice(&payload);
            0
        });
    }
    let offset = first.store(ONE, 1, 0, |out| message::encode(&long, None, out));
    first.store(TWO, 1, 0, |out| message::encode(&long, Some(offset), out));
    first.store(ONE, 2, 0, |out| message::encode(&short, None, out));
    first.deliver(&state, ONE, 2, 4);
    first.remove(&state, ONE, 1);
    let mut bytes = first.finish().to_vec();
    let at = (1, 64 + bytes.len() as u64);
    let mut second = Draft::begin(at, first.end_sequence(), salt, Vec::new());
    second.store(ONE, 3, 0, |out| message::encode(&short, None, out));
    second.purge(TWO);
    second.remain(ONE, 1, Left::default());
    bytes.extend_from_slice(second.finish());
    Records {
        bytes,
        offset,
        end_sequence: second.end_sequence(),
    }
}

fn index(number: u32, first_sequence: u64, offset: u32) -> Vec<u8> {
    let mut index = Index::default();
    for (key, place, offset) in [(ONE, 1, offset), (ONE, 3, 640), (TWO, 1, 700)] {
        index.push(key, place, offset);
    }
    let run = |places: &[i64]| RunSummary {
        stored: 3,
        bytes: Size {
            record: 400,
            body: 200,
        },
        left: Left {
            live: places.iter().copied().collect(),
            deliveries: BTreeMap::from([(3, 2)]),
        },
    };
    let summary = Summary {
        store: STORE,
        number,
        first_sequence,
        end_sequence: first_sequence + 9,
        data_bytes: 900,
        queues: vec![(ONE, run(&[1, 3])), (TWO, run(&[1]))],
        about: vec![(1, ONE, run(&[1]).left)],
    };
    index::encode(&summary, &index)
}

fn manifest(end_sequence: u64) -> Vec<u8> {
    let listed = |number, first_sequence| Listed {
        number,
        first_sequence,
        end_sequence: first_sequence + 9,
    };
    let manifest = Manifest {
        store: STORE,
        last: 2,
        end_sequence,
        segments: vec![listed(1, 1), listed(2, 10)],
        accepted: vec![(2, 3)],
    };
    manifest.encode()
}
