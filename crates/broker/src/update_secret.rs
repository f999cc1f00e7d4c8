//! `connection.update-secret`: another secret for an open connection.

use std::sync::Arc;

use crosstie_amqp::ReplyCode;
use crosstie_amqp::method::{ConnectionUpdateSecret, ConnectionUpdateSecretOk};
use crosstie_queues::Fault;

use super::backends::{Checked, Rights};
use super::broker::Broker;
use super::peer::Peer;

/// Handles a new secret. Returns false while it is checked; then the method is handled again.
pub(super) fn update_secret(
    peer: &Arc<Peer>,
    broker: &Broker,
    update: &ConnectionUpdateSecret<'_>,
) -> Result<bool, Fault> {
    let refused = || {
        let text = "New secret was refused by one of the backends";
        Fault::of::<ConnectionUpdateSecret<'_>>(ReplyCode::NotAllowed, text)
    };
    match &peer.rights {
        // Passwords do not expire, so that a new secret changes nothing.
        None => {}
        // A server decides anew on each access, and is not asked about secrets of open connections.
        Some(Rights::Http(_)) => return Err(refused()),
        Some(Rights::Token(rights)) => match rights.check(update.new_secret) {
            Checked::Right => {}
            Checked::Refused => return Err(refused()),
            Checked::Later(rights, secret) => {
                peer.awaits_secret(broker, rights, secret);
                return Ok(false);
            }
        },
    }
    peer.send(&ConnectionUpdateSecretOk {});
    Ok(true)
}
