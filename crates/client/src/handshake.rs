//! The opening handshakes of the transports: from a stream of bytes to a stream of messages.

use std::io;

use crosstie_wamp::framing::{rawsocket, websocket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::config::Config;
use crate::dial::Stream;
use crate::endpoint::Transport;
use crate::error::{ConnectError, Disconnected};
use crate::incoming::Incoming;
use crate::outgoing::{Format, Outgoing, WireFormat};

/// A connection on which both sides can send messages.
pub(crate) struct Wire {
    pub(crate) stream: Box<dyn Stream>,
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
}

/// Negotiates serializer and sizes with the router.
pub(crate) async fn shake_hands(
    mut stream: Box<dyn Stream>,
    config: &Config,
) -> Result<Wire, ConnectError> {
    let shaken = match &config.endpoint.transport {
        Transport::RawSocket => rawsocket(&mut *stream, config).await,
        Transport::WebSocket { target } => websocket(&mut *stream, target, config).await,
    };
    let Shaken {
        format,
        receive_length_max,
        received,
    } = shaken.map_err(|error| match error {
        Failed::Lost(cause) => ConnectError::Lost {
            endpoint: config.endpoint.to_string(),
            cause,
        },
        Failed::Refused(reason) => ConnectError::Handshake {
            endpoint: config.endpoint.to_string(),
            reason,
        },
    })?;
    Ok(Wire {
        stream,
        incoming: Incoming::new(&format, receive_length_max, received),
        outgoing: Outgoing::new(format),
    })
}

struct Shaken {
    format: Format,
    receive_length_max: usize,
    /// Bytes behind the handshake.
    received: Vec<u8>,
}

enum Failed {
    Lost(Disconnected),
    Refused(String),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Lost(match error.kind() {
            io::ErrorKind::UnexpectedEof => Disconnected::Closed { reason: None },
            _ => Disconnected::Broken(error.into()),
        })
    }
}

async fn rawsocket(stream: &mut dyn Stream, config: &Config) -> Result<Shaken, Failed> {
    let serializer = config.serializers.first();
    let handshake = rawsocket::ClientHandshake {
        serializer: *serializer.ok_or_else(nothing_offered)?,
        receive_length_max: config.message_bytes_max,
    };
    stream.write_all(&handshake.request()).await?;
    stream.flush().await?;
    let mut reply = [0; 4];
    stream.read_exact(&mut reply).await?;
    let accepted = handshake
        .accept(reply)
        .map_err(|error| Failed::Refused(error.to_string()))?;
    Ok(Shaken {
        format: Format::rawsocket(&accepted),
        receive_length_max: accepted.receive_length_max,
        received: Vec::new(),
    })
}

async fn websocket(
    stream: &mut dyn Stream,
    target: &str,
    config: &Config,
) -> Result<Shaken, Failed> {
    if config.serializers.is_empty() {
        return Err(nothing_offered());
    }
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|error| Failed::Refused(error.to_string()))?;
    let key = websocket::key(nonce);
    let host = config.http_host.clone();
    let host = host.unwrap_or_else(|| config.endpoint.http_host());
    let protocols: Vec<_> = config
        .serializers
        .iter()
        .map(|serializer| websocket::subprotocol(*serializer, config.batched))
        .collect();
    let request = websocket::ClientRequest {
        host: &host,
        target,
        key: &key,
        protocols: &protocols,
        extensions: None,
        headers: &[],
    };
    stream.write_all(&request.to_bytes()).await?;
    stream.flush().await?;
    let mut received = Vec::with_capacity(1024);
    loop {
        if stream.read_buf(&mut received).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let answer = request
            .accept(&received)
            .map_err(|error| Failed::Refused(error.to_string()))?;
        let Some((length, accepted)) = answer else {
            continue;
        };
        let chosen = accepted.protocol.and_then(websocket::from_subprotocol);
        let Some((serializer, batched)) = chosen else {
            let offered = protocols.join(", ");
            let reason = format!("the router speaks none of the subprotocols {offered}");
            return Err(Failed::Refused(reason));
        };
        received.drain(..length);
        return Ok(Shaken {
            format: Format {
                serializer,
                wire: WireFormat::WebSocket { batched },
                length_max: usize::MAX,
            },
            receive_length_max: config.message_bytes_max,
            received,
        });
    }
}

fn nothing_offered() -> Failed {
    Failed::Refused("the configuration offers no serializer".to_owned())
}
