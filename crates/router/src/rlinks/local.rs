//! The session of a link in its own realm: it sends directly, and receives through a socket.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use crosstie_realms::handled::Handled;
use crosstie_realms::peer::{Peer, Wire};
use crosstie_realms::resident::{Room, send};
use crosstie_rlinks::Side;
use crosstie_routing::{ClientFeature, ClientFeatures, Identity, SessionKey};
use crosstie_transport::{Connection, ConnectionLimits, Outcome, PeerAddress, Protocol, Socket};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::framing::{Framing, Item, rawsocket};
use crosstie_wamp::{Message, Serializer, SessionId};

use super::connected::Running;

/// A session in the realm.
pub(super) struct Local {
    room: Arc<dyn Room>,
    key: SessionKey,
    pub(super) session: SessionId,
    peer: Peer,
    /// Receives the realm's messages.
    pub(super) reader: Arc<Connection>,
}

/// Maximum message size: that of any router.
pub(super) const MESSAGE_BYTES_MAX: usize = 16 << 20;

impl Local {
    pub(super) fn join(
        room: Arc<dyn Room>,
        limits: &Arc<ConnectionLimits>,
        identity: Identity,
        serializer: Serializer,
    ) -> Result<Self, String> {
        let (own, other) = ends().map_err(|e| e.to_string())?;
        let open = |socket| Arc::new(Connection::new(socket, None, Arc::clone(limits)));
        let (connection, reader) = (open(own), open(other));
        let peer = Peer {
            connection,
            wire: Wire {
                serializer,
                framing: Framing::RawSocket,
                message_bytes_max: MESSAGE_BYTES_MAX as u32,
            },
        };
        let features = ClientFeatures::from_iter([
            ClientFeature::CallerProgressiveCallInvocations,
            ClientFeature::CalleeProgressiveCallInvocations,
            ClientFeature::CalleeProgressiveCallResults,
            ClientFeature::CalleeCallCanceling,
            ClientFeature::CalleeRegistrationRevocation,
            ClientFeature::SubscriberSubscriptionRevocation,
            ClientFeature::CallerPayloadPassthruMode,
            ClientFeature::CalleePayloadPassthruMode,
            ClientFeature::PublisherPayloadPassthruMode,
        ]);
        let joined = room.let_in(peer.clone(), identity, features, true);
        let (key, session) = joined.map_err(|why| why.to_string())?;
        Ok(Self {
            room,
            key,
            session,
            peer,
            reader,
        })
    }

    /// Sends a message; an error ends the link.
    pub(super) fn say(&self, message: &Message<'_>) -> Result<(), String> {
        let handled = self.room.route(self.key, message, &self.peer.connection);
        match handled {
            Handled {
                outcome: Err(violation),
                ..
            } => Err(violation.message.into()),
            // The configuration excludes this.
            Handled { asked: Some(_), .. } => Err("its role has an authorizer".to_owned()),
            _ => Ok(()),
        }
    }

    pub(super) fn leave(&self) {
        self.room.let_out(self.key);
        self.peer.connection.close();
        // A paused reader learns of it.
        self.reader.close();
        send();
    }
}

/// The reader of the realm's messages.
pub(super) struct FromLocal {
    frames: rawsocket::Decoder,
    serializer: Serializer,
    running: Arc<Running>,
}

impl FromLocal {
    pub(super) fn new(running: Arc<Running>, serializer: Serializer) -> Self {
        Self {
            frames: rawsocket::Decoder::new(MESSAGE_BYTES_MAX),
            serializer,
            running,
        }
    }
}

fn handle_message(running: &Running, serializer: Serializer, bytes: &[u8]) -> Result<(), String> {
    // As deep as any router's limit allows.
    let limits = Limits { depth_max: 512 };
    let message = codec::decode(serializer, bytes, &limits);
    let message = message.map_err(|e| format!("a message of its own realm is none: {e}"))?;
    running.handle(Side::Local, message)
}

impl Protocol for FromLocal {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        let mut consumed = 0;
        let outcome = loop {
            // Only this router writes there.
            let Ok(step) = self.frames.next(&mut input[consumed..]) else {
                break Outcome::Close;
            };
            if step.consumed == 0 {
                let wanted = step.wanted;
                break Outcome::Continue { consumed, wanted };
            }
            if let Some(Item::Message { bytes, .. }) = step.item
                && handle_message(&self.running, self.serializer, bytes).is_err()
            {
                break Outcome::Close;
            }
            consumed += step.consumed;
        };
        self.running.pause();
        outcome
    }
}

impl Drop for FromLocal {
    fn drop(&mut self) {
        self.running.end("its session in its own realm was closed");
    }
}

/// Two ends of one socket.
fn ends() -> io::Result<(Socket, Socket)> {
    let (own, other) = UnixStream::pair()?;
    own.set_nonblocking(true)?;
    other.set_nonblocking(true)?;
    let socket = |end: UnixStream| Socket::new(end.into(), PeerAddress::Unix(None));
    Ok((socket(own), socket(other)))
}
