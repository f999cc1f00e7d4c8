//! One side of a TLS connection as a [`Stage`]: rustls without its IO, so that any thread can send on the connection,
//! and without its buffers. Those take 4 KiB of a session that waits for its peer.

use std::mem;
use std::ops::Deref;
use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedConnectionCommon,
    UnbufferedStatus,
};
use rustls::{ClientConfig, ServerConfig};
use rustls_pki_types::ServerName;

use super::exporter::{self, ExporterSecret};
use crate::proxy_header::{ProxyHeader, UNEXPECTED_PROXY_HEADER};
use crate::{Stage, StageError};

/// A session of the library, of a server or a client.
pub trait Session: Deref<Target = UnbufferedConnectionCommon<Self::Data>> + Send {
    type Data;

    /// Processes records until there is something to do for its owner.
    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data>;
}

impl Session for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }
}

impl Session for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }
}

/// One side of a TLS connection.
pub struct TlsStage<S> {
    session: S,
    /// Received bytes of an incomplete record or handshake message.
    incoming: Vec<u8>,
    /// Boxed, because a session mostly has none.
    unsent: Option<Box<Unsent>>,
    /// `tls-exporter` (RFC 9266), once the handshake is complete.
    channel_binding: Option<[u8; 32]>,
    progress: Progress,
}

/// Bytes that wait for [`Stage::send`].
#[derive(Default)]
struct Unsent {
    /// Encoded records of the session itself, to be sent before anything else.
    records: Vec<u8>,
    /// Bytes to be sent when the handshake is complete.
    early: Vec<u8>,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The peer has announced its end.
    is_ended: bool,
    /// This side's end is to be announced, or was.
    is_finishing: bool,
    is_finished: bool,
    /// The session has failed, and sends an alert at most.
    is_failed: bool,
}

/// Maximum size of an incomplete handshake message with its records' headers, as the library's own buffer has it. A
/// record is shorter.
const INCOMING_BYTES_MAX: usize = 0xffff;

/// Bytes of a record beside its content: header, explicit nonce, tag and content type in any version.
const RECORD_BYTES: usize = 32;

/// Maximum content of a record.
const CONTENT_BYTES_MAX: usize = 16 * 1024;

impl TlsStage<UnbufferedServerConnection> {
    /// A server's side, before its handshake.
    pub fn server(config: Arc<ServerConfig>) -> Result<Self, StageError> {
        UnbufferedServerConnection::new(config)
            .map(Self::of)
            .map_err(failed)
    }
}

impl TlsStage<UnbufferedClientConnection> {
    /// A client's side, to a server whose certificate has that name.
    pub fn client(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, StageError> {
        UnbufferedClientConnection::new(config, name)
            .map(Self::of)
            .map_err(failed)
    }
}

impl<S: Session> TlsStage<S> {
    fn of(session: S) -> Self {
        Self {
            session,
            incoming: Vec::new(),
            unsent: None,
            channel_binding: None,
            progress: Progress::default(),
        }
    }

    /// Has the session process the incoming bytes. Appends what they contain to `plain`, and what it sends itself to
    /// the records. Returns whether it takes bytes to encrypt.
    fn process(&mut self, plain: &mut Vec<u8>) -> Result<bool, StageError> {
        let mut incoming = mem::take(&mut self.incoming);
        let mut at = 0;
        let processed = loop {
            let UnbufferedStatus { discard, state } = self.session.process(&mut incoming[at..]);
            let done = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    let mut failure = None;
                    while let Some(record) = traffic.next_record() {
                        match record {
                            Ok(record) => plain.extend_from_slice(record.payload),
                            Err(e) => failure = Some(Err(failed(e))),
                        }
                    }
                    failure
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    let records = &mut self.unsent.get_or_insert_default().records;
                    extend(records, 0, |room| data.encode(room)).err().map(Err)
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    None
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.progress.is_ended = true;
                    None
                }
                Ok(ConnectionState::WriteTraffic(_)) => Some(Ok(true)),
                Ok(ConnectionState::BlockedHandshake | ConnectionState::Closed) => Some(Ok(false)),
                // Early data, which no configuration here allows.
                Ok(other) => Some(Err(StageError(format!("TLS: unexpected {other:?}")))),
                Err(e) => Some(Err(failed(e))),
            };
            at += discard;
            if let Some(processed) = done {
                break processed;
            }
        };
        if let Some(shown) = exporter::take() {
            self.channel_binding = self.bind(&shown);
        }
        if processed.is_err() {
            self.progress.is_failed = true;
            self.encode_alert();
        } else if at < incoming.len() && !self.progress.is_ended {
            incoming.drain(..at);
            self.incoming = incoming;
        }
        processed
    }

    /// RFC 9266 defines it for TLS 1.2 too if the extended master secret was agreed on; the library does not report
    /// that.
    fn bind(&self, secret: &ExporterSecret) -> Option<[u8; 32]> {
        let suite = self.session.negotiated_cipher_suite()?.tls13()?;
        secret.channel_binding(suite)
    }

    /// Encodes the alert of a session that has failed. It gets no more input, which it would fail of again.
    fn encode_alert(&mut self) {
        while self.session.wants_write() {
            let Ok(ConnectionState::EncodeTlsData(mut data)) = self.session.process(&mut []).state
            else {
                return;
            };
            let records = &mut self.unsent.get_or_insert_default().records;
            if extend(records, 0, |room| data.encode(room)).is_err() {
                return;
            }
        }
    }

    /// Encrypts into `out`.
    fn encrypt(&mut self, content: &[u8], out: &mut Vec<u8>) -> Result<(), StageError> {
        let is_finishing = self.progress.is_finishing && !self.progress.is_finished;
        let state = self.session.process(&mut self.incoming).state;
        let Ok(ConnectionState::WriteTraffic(mut traffic)) = state else {
            return Err(StageError("TLS: the session sends no more".to_owned()));
        };
        if !content.is_empty() {
            let records = content.len() / CONTENT_BYTES_MAX + 1;
            let room = content.len() + records * RECORD_BYTES;
            extend(out, room, |room| traffic.encrypt(content, room))?;
        }
        if is_finishing {
            self.progress.is_finished = true;
            extend(out, RECORD_BYTES, |room| traffic.queue_close_notify(room))?;
        }
        Ok(())
    }
}

impl<S: Session> Stage for TlsStage<S> {
    fn send(&mut self, queued: &[u8], out: &mut Vec<u8>) -> Result<(), StageError> {
        let is_open = match self.progress.is_failed {
            true => false,
            false => self.process(&mut Vec::new())?,
        };
        if let Some(unsent) = &mut self.unsent {
            out.append(&mut unsent.records);
        }
        if is_open {
            if let Some(unsent) = self.unsent.take()
                && !unsent.early.is_empty()
            {
                self.encrypt(&unsent.early, out)?;
            }
            return self.encrypt(queued, out);
        }
        if queued.is_empty() {
            return Ok(());
        }
        // A session that may not send any more takes nothing, which is an error here.
        if !self.session.is_handshaking() || self.progress.is_failed {
            return Err(StageError("TLS: the session sends no more".to_owned()));
        }
        let unsent = self.unsent.get_or_insert_default();
        unsent.early.extend_from_slice(queued);
        Ok(())
    }

    fn receive(&mut self, received: &[u8], out: &mut Vec<u8>) -> Result<(), StageError> {
        // Behind the peer's goodbye nothing is valid.
        if self.progress.is_ended {
            return Ok(());
        }
        self.incoming.extend_from_slice(received);
        self.process(out).map_err(|e| {
            match self.session.is_handshaking() && ProxyHeader::begins(received) {
                true => StageError(format!("{e}: {UNEXPECTED_PROXY_HEADER}")),
                false => e,
            }
        })?;
        if self.incoming.len() > INCOMING_BYTES_MAX {
            return Err(StageError("TLS: the session takes no more".to_owned()));
        }
        // What is left of a read is mostly much less.
        if self.incoming.capacity() / 2 >= self.incoming.len() {
            self.incoming.shrink_to_fit();
        }
        Ok(())
    }

    fn is_ended(&self) -> bool {
        self.progress.is_ended
    }

    fn finish(&mut self) {
        self.progress.is_finishing = true;
    }

    fn peer_certificate(&self) -> Option<Vec<u8>> {
        let shown = self.session.peer_certificates()?.first()?;
        Some(shown.to_vec())
    }

    fn tls_exporter(&self) -> Option<[u8; 32]> {
        self.channel_binding
    }
}

/// Appends what `write` puts into the room behind `out`, which is as large as `write` requires.
fn extend<E: Insufficient>(
    out: &mut Vec<u8>,
    mut room: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, E>,
) -> Result<(), StageError> {
    let before = out.len();
    loop {
        out.resize(before + room, 0);
        match write(&mut out[before..]) {
            Ok(written) => {
                out.truncate(before + written);
                return Ok(());
            }
            Err(e) => match e.required_size() {
                Some(required) if required > room => room = required,
                _ => {
                    out.truncate(before);
                    return Err(StageError(format!("TLS: {e}")));
                }
            },
        }
    }
}

/// The library's errors of a room that is too small.
trait Insufficient: std::fmt::Display {
    fn required_size(&self) -> Option<usize>;
}

impl Insufficient for EncodeError {
    fn required_size(&self) -> Option<usize> {
        match self {
            Self::InsufficientSize(InsufficientSizeError { required_size, .. }) => {
                Some(*required_size)
            }
            Self::AlreadyEncoded => None,
        }
    }
}

impl Insufficient for EncryptError {
    fn required_size(&self) -> Option<usize> {
        match self {
            Self::InsufficientSize(InsufficientSizeError { required_size, .. }) => {
                Some(*required_size)
            }
            Self::EncryptExhausted => None,
        }
    }
}

fn failed(e: rustls::Error) -> StageError {
    StageError(format!("TLS: {e}"))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};
    use rustls::RootCertStore;
    use rustls_pki_types::PrivateKeyDer;

    use super::*;

    type Server = TlsStage<UnbufferedServerConnection>;
    type Client = TlsStage<UnbufferedClientConnection>;

    /// Both sides, before their handshake.
    fn pair() -> (Server, Client) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
        let certificate = params.self_signed(&key).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der().clone()).expect("added");
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
            )
            .expect("they match");
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("a name");
        (
            TlsStage::server(Arc::new(server)).expect("a session"),
            TlsStage::client(Arc::new(client), name).expect("a session"),
        )
    }

    /// Takes what one side sends to the other, in pieces of that size; returns what arrived.
    fn carry(from: &mut dyn Stage, to: &mut dyn Stage, bytes: &[u8], piece: usize) -> Vec<u8> {
        let (mut sent, mut arrived) = (Vec::new(), Vec::new());
        from.send(bytes, &mut sent).expect("sent");
        for piece in sent.chunks(piece) {
            to.receive(piece, &mut arrived).expect("received");
        }
        arrived
    }

    /// Exchanges messages until neither side has any.
    fn shake_hands(server: &mut Server, client: &mut Client, piece: usize) {
        for _ in 0..4 {
            assert_eq!(carry(client, server, b"", piece), b"");
            assert_eq!(carry(server, client, b"", piece), b"");
        }
    }

    #[test]
    fn an_idle_session_holds_no_buffers() {
        assert!(size_of::<Server>() <= 1168, "{}", size_of::<Server>());
        for piece in [1, 7, 4096, usize::MAX] {
            let (mut server, mut client) = pair();
            shake_hands(&mut server, &mut client, piece);
            for length in [1, 16_384, 16_385, 100_000] {
                let bytes: Vec<_> = (0..length).map(|place| (place % 251) as u8).collect();
                assert!(carry(&mut client, &mut server, &bytes, piece) == bytes);
                assert!(carry(&mut server, &mut client, &bytes, piece) == bytes);
                assert_eq!(server.incoming.capacity(), 0, "pieces of {piece}");
                assert!(server.unsent.is_none(), "pieces of {piece}");
            }
            assert!(!client.is_ended());
            server.finish();
            assert_eq!(
                carry(&mut server, &mut client, b"last words", piece),
                b"last words"
            );
            assert!(client.is_ended());
            let more = server.send(b"", &mut Vec::new());
            more.expect("says goodbye once");
        }
    }

    /// A part of a record is kept without the room of the read that brought it.
    #[test]
    fn a_part_of_a_record_takes_its_size() {
        let (mut server, mut client) = pair();
        shake_hands(&mut server, &mut client, usize::MAX);
        let mut sent = Vec::new();
        client.send(&[7; 40_000], &mut sent).expect("sent");
        let mut arrived = Vec::new();
        let (now, later) = sent.split_at(sent.len() - 100);
        server.receive(now, &mut arrived).expect("received");
        assert_eq!(arrived.len(), 2 * CONTENT_BYTES_MAX);
        assert!(server.incoming.capacity() < 2 * server.incoming.len() + 1);
        server.receive(later, &mut arrived).expect("received");
        assert!(arrived == [7; 40_000]);
        assert_eq!(server.incoming.capacity(), 0);
    }

    /// A handshake message of the greatest length that a header can have.
    #[test]
    fn a_handshake_message_that_does_not_end_is_refused() {
        let (mut server, _) = pair();
        let mut fragment = vec![22, 3, 1, 0x40, 0];
        fragment.extend([1, 0, 0xff, 0xff]);
        fragment.resize(5 + 0x4000, 0);
        let mut fed = 0;
        let refused = loop {
            match server.receive(&fragment, &mut Vec::new()) {
                Ok(()) => fed += fragment.len(),
                Err(e) => break e,
            }
            fragment[5..9].fill(0);
            assert!(fed <= INCOMING_BYTES_MAX, "fed {fed} bytes");
        };
        assert!(refused.0.starts_with("TLS: "), "{refused}");
    }
}
