//! AUTH behind a CONNECT that stays in the input until the login is done.

use std::time::Instant;

use crosstie_front::report;
use crosstie_mqtt::{
    Connect, Decoded, HeaderDecoded, Packet, PacketType, ReasonCode, Version, decode, decode_header,
};

use crate::conversation::{CONNECT_BYTES_MAX, Conversation, End, Step};
use crate::figures::Figures;
use crate::home::Home;

/// Maximum size of AUTH before the end of the login.
const AUTH_BYTES_MAX: u32 = 8 * 1024;

impl<H: Home> Conversation<H> {
    /// Reads the AUTH behind a CONNECT of so many bytes.
    pub(crate) fn step_auth(
        &mut self,
        connect: &Connect<'_>,
        behind: &[u8],
        connect_bytes: usize,
        now: Instant,
    ) -> Step {
        let version = connect.version;
        let mut consumed = connect_bytes;
        let logged_in = match decode(behind, version, AUTH_BYTES_MAX) {
            Ok(Decoded::Incomplete { wanted }) => return Step::Wanted(connect_bytes + wanted),
            Ok(Decoded::Packet {
                packet: Packet::Auth(auth),
                consumed: bytes,
            }) if auth.reason == ReasonCode::ContinueAuthentication => {
                consumed += bytes;
                Figures::get().count_received(PacketType::Auth);
                H::authenticate(self, connect, (&auth, bytes), now)
            }
            Ok(Decoded::Packet {
                packet: Packet::Disconnect(_),
                ..
            }) => return Step::End(End::ByClient),
            Ok(Decoded::Packet { packet, .. }) => {
                let name = packet.packet_type().name();
                report::peer_fault(&self.connection, "protocol error", name);
                Err(End::Reason(ReasonCode::ProtocolError))
            }
            Err(e) => {
                report::peer_fault(&self.connection, e.reason().name(), &e.to_string());
                Err(End::Reason(e.reason()))
            }
        };
        self.take_login(logged_in, version, consumed)
    }

    /// Bytes of CONNECT and of the AUTH behind it, unless all of them are there. AUTH may come in many small parts, so CONNECT
    /// is not decoded for each.
    pub(crate) fn wanted_behind_connect(input: &[u8]) -> Option<usize> {
        let wanted = |input, version, size_max| match decode_header(input, version, size_max) {
            Ok(HeaderDecoded::Header(header)) => Some(header.header_bytes + header.remaining_bytes),
            Ok(HeaderDecoded::Incomplete { wanted }) => Some(wanted),
            // The decoder of the packet tells why.
            Err(_) => None,
        };
        // As `decode_connect`.
        let connect_bytes = wanted(input, Version::V311, CONNECT_BYTES_MAX)?;
        let behind = input.get(connect_bytes..)?;
        let wanted = wanted(behind, Version::V5, AUTH_BYTES_MAX)?;
        (behind.len() < wanted).then_some(connect_bytes + wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::Ground;

    #[test]
    fn the_header_of_auth_tells_how_much_is_wanted() {
        let connect = [0x10, 0x83, 0x00, 1, 2, 3];
        for (behind, wanted) in [
            (&[][..], Some(8)),
            (&[0xf0], Some(8)),
            (&[0xf0, 0x80], Some(9)),
            (&[0xf0, 2], Some(10)),
            (&[0xf0, 2, 0x18], Some(10)),
            (&[0xf0, 2, 0x18, 0], None),
            (&[0xc0, 0], None),
            // Errors.
            (&[0x00], None),
            (&[0xf0, 0x80, 0x80, 0x80, 0x01], None),
        ] {
            let input = [&connect[..], behind].concat();
            assert_eq!(
                Conversation::<Ground>::wanted_behind_connect(&input),
                wanted,
                "{behind:?}"
            );
        }
    }
}
