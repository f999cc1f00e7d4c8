//! RawSocket: both sides of the handshake, prefixes good and bad, and what is sent.

use crosstie_wamp::Serializer::{self, Cbor, Json, MsgPack};
use crosstie_wamp::framing::rawsocket::{
    ClientHandshake, Decoder, HandshakeError, LENGTH_MAX, ServerHandshake, fits,
};
use crosstie_wamp::framing::{FrameError, Framing, FramingError};

use crate::drive::{Out, every_cut};

#[test]
fn a_router_answers_requests() {
    const ALL: &[Serializer] = &[Json, MsgPack, Cbor];
    const BINARY: &[Serializer] = &[MsgPack];
    let check = |bytes, offered, length_max, expected: Result<_, [u8; 4]>| {
        let accepted = ServerHandshake::accept(bytes, offered, length_max);
        let accepted = accepted
            .map(|a| (a.serializer, a.peer_length_max, a.reply))
            .map_err(|error| error.reply().unwrap_or_default());
        assert_eq!(accepted, expected, "{bytes:02x?}");
    };
    let (m16, k1) = (1 << 24, 1 << 10);
    check(
        [0x7F, 0xF1, 0, 0],
        ALL,
        m16,
        Ok((Json, m16, [0x7F, 0xF1, 0, 0])),
    );
    check(
        [0x7F, 0x12, 0, 0],
        ALL,
        512,
        Ok((MsgPack, k1, [0x7F, 0x02, 0, 0])),
    );
    // What the client takes must hold a WELCOME.
    check([0x7F, 0x02, 0, 0], ALL, m16, Err([0x7F, 0x20, 0, 0]));
    check(
        [0x7F, 0x73, 0, 0],
        ALL,
        1 << 20,
        Ok((Cbor, 1 << 16, [0x7F, 0xB3, 0, 0])),
    );
    // The largest power of two that is not above what the router accepts.
    check(
        [0x7F, 0xF2, 0, 0],
        ALL,
        1_000_000,
        Ok((MsgPack, m16, [0x7F, 0xA2, 0, 0])),
    );
    check(
        [0x7F, 0xF2, 0, 0],
        ALL,
        1,
        Ok((MsgPack, m16, [0x7F, 0x02, 0, 0])),
    );
    check(
        [0x7F, 0xF2, 0, 0],
        ALL,
        usize::MAX,
        Ok((MsgPack, m16, [0x7F, 0xF2, 0, 0])),
    );
    for number in [0, 4, 5, 6, 15] {
        check(
            [0x7F, 0xF0 | number, 0, 0],
            ALL,
            m16,
            Err([0x7F, 0x10, 0, 0]),
        );
    }
    check([0x7F, 0xF1, 0, 0], BINARY, m16, Err([0x7F, 0x10, 0, 0]));
    check([0x7F, 0xF1, 0, 1], ALL, m16, Err([0x7F, 0x30, 0, 0]));
    check([0x7F, 0xF0, 0x80, 0], ALL, m16, Err([0x7F, 0x30, 0, 0]));
    check(*b"GET ", ALL, m16, Err([0; 4]));
    assert_eq!(HandshakeError::LengthMax.reply(), Some([0x7F, 0x20, 0, 0]));
    assert_eq!(
        HandshakeError::ConnectionsMax.reply(),
        Some([0x7F, 0x40, 0, 0])
    );
}

#[test]
fn a_client_reads_answers() {
    let client = ClientHandshake {
        serializer: Cbor,
        receive_length_max: 1 << 20,
    };
    assert_eq!(client.request(), [0x7F, 0xB3, 0, 0]);
    let check = |bytes, expected: Result<usize, HandshakeError>| {
        let accepted = client.accept(bytes).map(|a| a.peer_length_max);
        assert_eq!(accepted, expected, "{bytes:02x?}");
    };
    check([0x7F, 0x03, 0, 0], Ok(512));
    check([0x7F, 0xF3, 0, 0], Ok(1 << 24));
    check(
        [0x7F, 0xF1, 0, 0],
        Err(HandshakeError::Serializer { number: 1 }),
    );
    check([0x7F, 0x10, 0, 0], Err(HandshakeError::Refused(1)));
    check([0x7F, 0x40, 0, 0], Err(HandshakeError::Refused(4)));
    check([0x7F, 0xF3, 1, 0], Err(HandshakeError::ReservedBits));
    check(*b"HTTP", Err(HandshakeError::Magic { byte: b'H' }));
}

#[test]
fn prefixes_give_the_ends_of_messages() {
    let check = |bytes: &[u8], expected: &[Out]| {
        let (found, _) = every_cut(|| Decoder::new(512), bytes);
        assert_eq!(found, expected, "{bytes:02x?}");
    };
    let message = |bytes: &[u8]| Out::Binary(bytes.to_vec());
    check(b"", &[]);
    check(b"\0\0\0", &[]);
    check(b"\0\0\0\0", &[message(b"")]);
    check(
        b"\0\0\0\x02ab\0\0\0\x01c\0\0\0\x05d",
        &[message(b"ab"), message(b"c")],
    );
    check(
        b"\x01\0\0\x02pi\x02\0\0\0",
        &[Out::Ping(b"pi".to_vec()), Out::Pong(vec![])],
    );
    let full = [&b"\0\0\x02\0"[..], &[7; 512]].concat();
    check(&full, &[message(&[7; 512])]);

    let fault = |error| [Out::Fault(error)];
    let too_long = |length| FramingError::TooLong {
        length,
        length_max: 512,
    };
    check(b"\0\0\x02\x01", &fault(too_long(513)));
    check(b"\x02\0\x02\x01", &fault(too_long(513)));
    check(b"\x08\0\0\0", &fault(too_long(1 << 24)));
    check(b"\x03\0\0\0", &fault(FramingError::PrefixType { kind: 3 }));
    check(b"\x07\0\0\0", &fault(FramingError::PrefixType { kind: 7 }));
    check(
        b"\x10\0\0\0",
        &fault(FramingError::PrefixReserved { byte: 0x10 }),
    );
    check(
        b"\x80\0\0\0",
        &fault(FramingError::PrefixReserved { byte: 0x80 }),
    );
    check(
        b"\x08\0\0\x01",
        &fault(FramingError::PrefixLength { length: 1 }),
    );
    check(
        b"\x7F\xF1\0\0",
        &fault(FramingError::PrefixReserved { byte: 0x7F }),
    );
}

#[test]
fn sixteen_mebibytes_have_a_bit_of_their_own() {
    for (length, prefix) in [
        (LENGTH_MAX - 1, [0, 0xFF, 0xFF, 0xFF]),
        (LENGTH_MAX, [8, 0, 0, 0]),
    ] {
        let mut out = b"before".to_vec();
        framed(Framing::RawSocket, &vec![b'x'; length], &mut out).expect("it fits");
        assert_eq!(out[6..10], prefix);
        let step_length = {
            let mut decoder = Decoder::new(LENGTH_MAX);
            let step = decoder.next(&mut out[6..]).expect("it is well-formed");
            assert!(step.item.is_some());
            step.consumed
        };
        assert_eq!(step_length, 4 + length);
        assert!(fits(step_length, length) && !fits(step_length, length - 1));
    }
    let mut out = b"before".to_vec();
    let error = framed(Framing::RawSocket, &vec![b'x'; LENGTH_MAX + 1], &mut out);
    let length = LENGTH_MAX + 1;
    let length_max = LENGTH_MAX;
    assert_eq!(error, Err(FrameError::TooLong { length, length_max }));
    assert_eq!(out, b"before");
}

#[test]
fn control_messages_are_read_as_they_were_written() {
    let mut out = Vec::new();
    Framing::RawSocket.ping(b"one", &mut out);
    Framing::RawSocket.pong(b"", &mut out);
    Framing::RawSocket.close(1000, "no such thing", &mut out);
    let (found, _) = every_cut(|| Decoder::new(512), &out);
    assert_eq!(found, [Out::Ping(b"one".to_vec()), Out::Pong(vec![])]);
}

#[test]
fn a_failed_writer_leaves_nothing() {
    let mut out = b"before".to_vec();
    let error = Framing::RawSocket.frame(MsgPack, 0, &mut out, |out| {
        out.push(1);
        Err("no")
    });
    assert_eq!(
        (error, &*out),
        (Err(FrameError::Write("no")), &b"before"[..])
    );
}

fn framed(framing: Framing, body: &[u8], out: &mut Vec<u8>) -> Result<(), FrameError<()>> {
    framing.frame(MsgPack, body.len(), out, |out| {
        out.extend_from_slice(body);
        Ok(())
    })
}
