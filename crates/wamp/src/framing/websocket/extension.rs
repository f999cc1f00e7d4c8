//! Agreeing on permessage-deflate: which side compresses how (RFC 7692 section 7.1).
//!
//! ```text
//! client  offer ──▶ Sec-WebSocket-Extensions ──▶ accept  server
//! client  agree ◀── Sec-WebSocket-Extensions ◀──────┘
//! ```

use std::fmt::Write;

use super::HandshakeError;
use super::ResponseError;

const NAME: &str = "permessage-deflate";
const HEADER: &str = "Sec-WebSocket-Extensions";
/// The widest window, which applies if no other is named.
const WINDOW_BITS_MAX: u8 = 15;
/// The narrowest window this side's compressor can keep to. The protocol has 8 as well.
const WINDOW_BITS_MIN: u8 = 9;

/// The wishes of this side for permessage-deflate. The peer may want less, never more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeflateConfig {
    /// This side forgets each message before it compresses the next.
    pub no_context_takeover: bool,
    /// Bits of this side's window: 9 to 15.
    pub window_bits_max: u8,
    /// The peer is asked to forget each message before it compresses the next.
    pub peer_no_context_takeover: bool,
    /// Bits the peer's window is asked to have at most: 9 to 15.
    pub peer_window_bits_max: u8,
    /// How hard to compress: 1 to 9.
    pub level: u8,
    /// How much memory to compress with: 1 to 9.
    pub memory_level: u8,
}

impl Default for DeflateConfig {
    fn default() -> Self {
        Self {
            no_context_takeover: false,
            window_bits_max: WINDOW_BITS_MAX,
            peer_no_context_takeover: false,
            peer_window_bits_max: WINDOW_BITS_MAX,
            level: 6,
            memory_level: 8,
        }
    }
}

/// The agreed parameters, as the decoder and the [`super::Deflater`] of one side need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deflate {
    pub(super) own: Context,
    pub(super) peer: Context,
    pub(super) level: u8,
    pub(super) memory_level: u8,
}

/// The memory of one direction's compressor between messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) takeover: bool,
    pub(super) window_bits: u8,
}

impl DeflateConfig {
    /// A server's answer to the offers in a request's headers: the first one it can hold, with
    /// the header to respond with. None: no such extension is offered.
    pub fn accept(&self, offers: &[&str]) -> Result<Option<(Deflate, String)>, HandshakeError> {
        let offers = offers.iter().map(|value| extensions(value));
        let offers: Option<Vec<_>> = offers.collect();
        let offers = offers.ok_or(HandshakeError::Header { name: HEADER })?;
        let mut offers = offers.iter().flatten();
        Ok(offers.find_map(|offer| self.accept_offer(&Parameters::read(offer)?)))
    }

    fn accept_offer(&self, offer: &Parameters) -> Option<(Deflate, String)> {
        let config = self.clamped();
        let own = Context {
            takeover: !(config.no_context_takeover || offer.server_no_context_takeover),
            window_bits: match offer.server_max_window_bits {
                Some(bits) => bits.min(config.window_bits_max),
                None => config.window_bits_max,
            },
        };
        if own.window_bits < WINDOW_BITS_MIN {
            return None;
        }
        // A client that does not say it can narrow its window must not be asked to.
        let peer_window_bits = offer
            .client_max_window_bits
            .map(|bits| bits.unwrap_or(WINDOW_BITS_MAX))
            .map(|bits| bits.min(config.peer_window_bits_max))
            .filter(|&bits| bits < WINDOW_BITS_MAX);
        let peer = Context {
            takeover: !(config.peer_no_context_takeover || offer.client_no_context_takeover),
            window_bits: peer_window_bits.unwrap_or(WINDOW_BITS_MAX),
        };
        let narrowed = own.window_bits < WINDOW_BITS_MAX;
        let response = Parameters {
            server_no_context_takeover: !own.takeover,
            client_no_context_takeover: !peer.takeover,
            server_max_window_bits: (narrowed || offer.server_max_window_bits.is_some())
                .then_some(own.window_bits),
            client_max_window_bits: peer_window_bits.map(Some),
        };
        Some((config.agreed(own, peer), response.to_header()))
    }

    /// The offer of a client.
    pub fn offer(&self) -> String {
        let config = self.clamped();
        let narrowed = |bits: u8| (bits < WINDOW_BITS_MAX).then_some(bits);
        let offer = Parameters {
            server_no_context_takeover: config.peer_no_context_takeover,
            client_no_context_takeover: config.no_context_takeover,
            server_max_window_bits: narrowed(config.peer_window_bits_max),
            client_max_window_bits: Some(narrowed(config.window_bits_max)),
        };
        offer.to_header()
    }

    /// The meaning of a server's response to [`DeflateConfig::offer`]. `None`: it declined.
    pub fn agree(&self, response: &[&str]) -> Result<Option<Deflate>, ResponseError> {
        let wrong = ResponseError::Header { name: HEADER };
        let config = self.clamped();
        let extensions: Option<Vec<_>> = response.iter().map(|value| extensions(value)).collect();
        let extensions: Vec<_> = extensions.ok_or(wrong)?.into_iter().flatten().collect();
        let accepted = match &extensions[..] {
            [] => return Ok(None),
            [only] => Parameters::read(only).ok_or(wrong)?,
            _ => return Err(wrong),
        };
        let own = Context {
            takeover: !(config.no_context_takeover || accepted.client_no_context_takeover),
            window_bits: match accepted.client_max_window_bits {
                None => config.window_bits_max,
                Some(Some(bits)) if bits >= WINDOW_BITS_MIN && bits <= config.window_bits_max => {
                    bits
                }
                Some(_) => return Err(wrong),
            },
        };
        let peer = Context {
            takeover: !accepted.server_no_context_takeover,
            window_bits: accepted.server_max_window_bits.unwrap_or(WINDOW_BITS_MAX),
        };
        // A parameter that was asked for is part of the agreement.
        if config.peer_no_context_takeover && peer.takeover
            || config.peer_window_bits_max < peer.window_bits
        {
            return Err(wrong);
        }
        Ok(Some(config.agreed(own, peer)))
    }

    fn agreed(&self, own: Context, peer: Context) -> Deflate {
        Deflate {
            own,
            peer,
            level: self.level,
            memory_level: self.memory_level,
        }
    }

    /// The compressor panics on numbers out of its range.
    fn clamped(&self) -> Self {
        Self {
            window_bits_max: self.window_bits_max.clamp(WINDOW_BITS_MIN, WINDOW_BITS_MAX),
            peer_window_bits_max: self
                .peer_window_bits_max
                .clamp(WINDOW_BITS_MIN, WINDOW_BITS_MAX),
            level: self.level.clamp(1, 9),
            memory_level: self.memory_level.clamp(1, 9),
            ..*self
        }
    }
}

/// The parameters of one offer or response. Section 7.1.
#[derive(Debug, Default)]
struct Parameters {
    server_no_context_takeover: bool,
    client_no_context_takeover: bool,
    server_max_window_bits: Option<u8>,
    /// An offer may name it without a number.
    client_max_window_bits: Option<Option<u8>>,
}

impl Parameters {
    /// None: it is another extension, or has a parameter that is unknown, doubled or wrong.
    fn read(extension: &Extension<'_>) -> Option<Self> {
        if !extension.name.eq_ignore_ascii_case(NAME) {
            return None;
        }
        let mut parameters = Self::default();
        for &(name, value) in &extension.parameters {
            let doubled = match (name, value) {
                ("server_no_context_takeover", None) => {
                    std::mem::replace(&mut parameters.server_no_context_takeover, true)
                }
                ("client_no_context_takeover", None) => {
                    std::mem::replace(&mut parameters.client_no_context_takeover, true)
                }
                ("server_max_window_bits", Some(value)) => {
                    let bits = window_bits(value)?;
                    parameters.server_max_window_bits.replace(bits).is_some()
                }
                ("client_max_window_bits", value) => {
                    let bits = match value {
                        Some(value) => Some(window_bits(value)?),
                        None => None,
                    };
                    parameters.client_max_window_bits.replace(bits).is_some()
                }
                _ => return None,
            };
            if doubled {
                return None;
            }
        }
        Some(parameters)
    }

    fn to_header(&self) -> String {
        let mut header = NAME.to_owned();
        if self.server_no_context_takeover {
            header.push_str("; server_no_context_takeover");
        }
        if self.client_no_context_takeover {
            header.push_str("; client_no_context_takeover");
        }
        // Writing to a string cannot fail.
        if let Some(bits) = self.server_max_window_bits {
            let _ = write!(header, "; server_max_window_bits={bits}");
        }
        match self.client_max_window_bits {
            Some(Some(bits)) => {
                let _ = write!(header, "; client_max_window_bits={bits}");
            }
            Some(None) => header.push_str("; client_max_window_bits"),
            None => {}
        }
        header
    }
}

/// A decimal number from 8 to 15, without leading zeros.
fn window_bits(value: &str) -> Option<u8> {
    (8..=WINDOW_BITS_MAX).find(|bits| bits.to_string() == value)
}

/// One member of the header. RFC 6455 section 9.1.
struct Extension<'a> {
    name: &'a str,
    parameters: Vec<(&'a str, Option<&'a str>)>,
}

/// The members of one header. None: it is not in the header's form.
fn extensions(value: &str) -> Option<Vec<Extension<'_>>> {
    let members = value.split(',').map(str::trim);
    members
        .filter(|member| !member.is_empty())
        .map(|member| {
            let mut parts = member.split(';').map(str::trim);
            let name = parts.next().filter(|name| is_token(name))?;
            let parameters = parts.map(parameter).collect::<Option<_>>()?;
            Some(Extension { name, parameters })
        })
        .collect()
}

fn parameter(part: &str) -> Option<(&str, Option<&str>)> {
    let (name, value) = match part.split_once('=') {
        None => (part, None),
        Some((name, value)) => (name.trim_end(), Some(value.trim_start())),
    };
    // A quoted value must be a token too, so no comma or semicolon hides in the quotes.
    let value = value.map(|value| {
        let quoted = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
        quoted.unwrap_or(value)
    });
    (is_token(name) && value.is_none_or(is_token)).then_some((name, value))
}

/// RFC 9110 section 5.6.2.
fn is_token(text: &str) -> bool {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c);
    !text.is_empty() && text.bytes().all(allowed)
}
