//! Batches, good and bad, and batches of one as they are sent.

use crosstie_wamp::Serializer::{self, Cbor, Json, MsgPack};
use crosstie_wamp::framing::websocket::{Decoder, DecoderConfig, Role};
use crosstie_wamp::framing::{FrameError, Framing, FramingError, batched};

use crate::drive::{Out, every_cut};

#[test]
fn batches_are_split() {
    type Row<'a> = (Serializer, &'a [u8], &'a [&'a [u8]], Option<FramingError>);
    let empty = Some(FramingError::BatchEmpty);
    let cut = Some(FramingError::BatchCut);
    let rows: &[Row<'_>] = &[
        (Json, b"[1]\x1E", &[b"[1]"], None),
        (
            Json,
            b"[1]\x1E[2,3]\x1E[]\x1E",
            &[b"[1]", b"[2,3]", b"[]"],
            None,
        ),
        (Json, b"", &[], empty),
        (Json, b"\x1E", &[], empty),
        (Json, b"[1]\x1E\x1E", &[b"[1]"], empty),
        (Json, b"[1]", &[], cut),
        (Json, b"[1]\x1E[2]", &[b"[1]"], cut),
        (MsgPack, b"\0\0\0\x01a", &[b"a"], None),
        (Cbor, b"\0\0\0\x01a\0\0\0\x02\0\0", &[b"a", b"\0\0"], None),
        (MsgPack, b"", &[], empty),
        (Cbor, b"", &[], empty),
        (MsgPack, b"\0\0\0\0", &[], empty),
        (MsgPack, b"\0\0\0\x01a\0\0\0\0", &[b"a"], empty),
        (MsgPack, b"\0\0\0\x01a\0", &[b"a"], cut),
        (MsgPack, b"\0\0\0\x02a", &[], cut),
        (MsgPack, b"\xFF\xFF\xFF\xFFa", &[], cut),
    ];
    for &(serializer, bytes, messages, error) in rows {
        let mut found: Vec<_> = batched::split(serializer, bytes).take(10).collect();
        let last = found.pop_if(|last| last.is_err());
        assert_eq!(
            last.map(Result::unwrap_err),
            error,
            "{serializer} {bytes:02x?}"
        );
        let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
        assert_eq!(found, messages, "{serializer} {bytes:02x?}");
    }
}

#[test]
fn a_sent_message_is_a_batch_of_one() {
    let mask = [9, 8, 7, 6];
    for serializer in Serializer::ALL {
        for length in [1, 120, 121, 122, 124, 125, 126, 1000, 65_531, 65_535] {
            for (role, framing) in [
                (Role::Client, Framing::WebSocketServer { batched: true }),
                (
                    Role::Server,
                    Framing::WebSocketClient {
                        batched: true,
                        mask,
                    },
                ),
            ] {
                let body = vec![b'b'; length];
                let mut out = Vec::new();
                let framed: Result<(), FrameError<()>> =
                    framing.frame(serializer, length, &mut out, |out| {
                        out.extend_from_slice(&body);
                        Ok(())
                    });
                framed.expect("it fits");
                let mut decoder = Decoder::new(role, DecoderConfig::default());
                let (found, _) = crate::drive::drive(&mut decoder, [&out[..]]);
                let (([Out::Text(batch)], false) | ([Out::Binary(batch)], true)) =
                    (&found[..], serializer.is_binary())
                else {
                    panic!("expected one message of {serializer}, got {found:?}");
                };
                let messages: Vec<_> = batched::split(serializer, batch).collect();
                assert_eq!(messages, [Ok(&body[..])]);
            }
        }
    }
}

#[test]
fn a_batch_comes_like_any_message() {
    let bytes = b"\x81\x08[1]\x1E[2]\x1E";
    let config = DecoderConfig::default();
    let (found, _) = every_cut(|| Decoder::new(Role::Client, config), bytes);
    assert_eq!(found, [Out::Text(b"[1]\x1E[2]\x1E".to_vec())]);
}
