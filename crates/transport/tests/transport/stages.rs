//! Filters and stages between a queue and its socket.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use crosstie_transport::{Connection, Filter, Filtered, Stage, StageError, uncork};
use parking_lot::Mutex;

use crate::rig::{
    END, append, generous, inverted, inverting, pair, pair_with, pattern, received, run,
};

/// Doubles each byte; takes whole lines only.
struct Doubling;

impl Filter for Doubling {
    fn send(&mut self, queued: &[u8], out: &mut Filtered<'_>) -> Result<(), StageError> {
        if queued.last() != Some(&b'\n') {
            return Err(StageError(format!("expected lines, got {queued:?}")));
        }
        let doubled = doubled(queued);
        match queued.len() % 2 {
            0 => out.append(&doubled),
            _ => out.append_shared(&Bytes::from(doubled)),
        }
        Ok(())
    }
}

fn doubled(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| [*byte; 2]).collect()
}

fn line(length: usize) -> Vec<u8> {
    let mut bytes = vec![b'x'; length];
    bytes.push(b'\n');
    bytes
}

/// The appends before the filter is set, those after it, and whether a stage follows.
type Case = (&'static [&'static [u8]], &'static [usize], bool);

#[test]
fn a_filter_applies_to_later_appends() {
    let cases: [Case; 6] = [
        (&[], &[3], false),
        (&[b"no line"], &[3], false),
        (&[b"no", b" line"], &[0, 5000, 1, 1500], false),
        // More than the socket takes: the filter is set while the connection is blocked.
        (&[&[b'z'; 300_000], b"no line"], &[100_000], false),
        (&[b"no line"], &[0, 5000, 1, 1500], true),
        (&[&[b'z'; 300_000], b"no line"], &[100_000], true),
    ];
    for (before, after, has_stage) in cases {
        run(async {
            let stage = if has_stage { inverting() } else { None };
            let (connection, peer) = pair_with(stage, &generous(), 1);
            let mut expected = Vec::new();
            for (index, bytes) in before.iter().enumerate() {
                assert_eq!(append(&connection, bytes), Ok(()));
                if index == 0 && bytes.len() > 1000 {
                    connection.flush();
                }
                expected.extend_from_slice(bytes);
            }
            connection.set_filter(Arc::new(Mutex::new(Doubling)));
            for (index, length) in after.iter().enumerate() {
                let bytes = line(*length);
                let appended = if index % 2 == 0 {
                    append(&connection, &bytes)
                } else {
                    connection
                        .append_shared(&Bytes::from(bytes.clone()))
                        .map(drop)
                };
                assert_eq!(appended, Ok(()));
                expected.extend(doubled(&bytes));
            }
            uncork();
            connection.finish();
            if has_stage {
                expected = inverted(&expected);
                expected.push(END);
            }
            assert!(
                received(peer).await == expected,
                "{} bytes before",
                before.len()
            );
        });
    }
}

#[test]
fn a_filter_that_fails_ends_the_connection() {
    run(async {
        let (connection, peer) = pair(&generous());
        connection.set_filter(Arc::new(Mutex::new(Doubling)));
        assert_eq!(append(&connection, b"no line"), Ok(()));
        uncork();
        assert!(connection.is_closed());
        assert_eq!(received(peer).await, b"");
    });
}

#[test]
fn a_stage_says_goodbye_after_the_last_byte() {
    for length in [0, 1, 2000, 500_000] {
        run(async {
            let (connection, peer) = pair_with(inverting(), &generous(), 1);
            assert_eq!(append(&connection, &pattern(length)), Ok(()));
            connection.finish();
            let mut expected = inverted(&pattern(length));
            expected.push(END);
            assert!(received(peer).await == expected, "{length} bytes");
        });
    }
}

/// Appends to its connection again whenever it sends, as another thread could.
struct Refilling {
    connection: Weak<Connection>,
    left: usize,
    sent: Arc<AtomicUsize>,
}

impl Stage for Refilling {
    fn send(&mut self, queued: &[u8], out: &mut Vec<u8>) -> Result<(), StageError> {
        out.extend_from_slice(queued);
        self.sent.fetch_add(queued.len(), Ordering::Relaxed);
        if self.left > 0
            && let Some(connection) = self.connection.upgrade()
        {
            self.left -= 1;
            append(&connection, b"x").map_err(|e| StageError(format!("{e:?}")))?;
        }
        Ok(())
    }

    fn receive(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<(), StageError> {
        Ok(())
    }

    fn is_ended(&self) -> bool {
        false
    }

    fn finish(&mut self) {}
}

#[test]
fn a_thread_sends_for_others_for_a_bounded_time() {
    run(async {
        let sent = Arc::new(AtomicUsize::new(0));
        let stage = Arc::new(Mutex::new(Refilling {
            connection: Weak::new(),
            left: 200,
            sent: Arc::clone(&sent),
        }));
        let (connection, peer) = pair_with(
            Some(Box::new(Mutex::new(Shared(Arc::clone(&stage))))),
            &generous(),
            1 << 20,
        );
        stage.lock().connection = Arc::downgrade(&connection);
        assert_eq!(append(&connection, b"x"), Ok(()));
        connection.flush();
        let by_this_thread = sent.load(Ordering::Relaxed);
        assert!(by_this_thread < 100, "sent {by_this_thread} in a row");
        crate::rig::until(|| sent.load(Ordering::Relaxed) == 201).await;
        connection.finish();
        assert_eq!(received(peer).await, vec![b'x'; 201]);
    });
}

/// A stage that the test can reach too.
struct Shared(Arc<Mutex<Refilling>>);

impl Stage for Shared {
    fn send(&mut self, queued: &[u8], out: &mut Vec<u8>) -> Result<(), StageError> {
        self.0.lock().send(queued, out)
    }

    fn receive(&mut self, received: &[u8], out: &mut Vec<u8>) -> Result<(), StageError> {
        self.0.lock().receive(received, out)
    }

    fn is_ended(&self) -> bool {
        false
    }

    fn finish(&mut self) {}
}
