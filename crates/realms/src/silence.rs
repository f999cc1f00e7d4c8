//! Clients that were told GOODBYE and do not answer.

use std::sync::{Arc, Weak};

use crosstie_front::cause::Cause;
use crosstie_front::connections::Connections;
use crosstie_front::report;
use crosstie_transport::Connection;

use crate::realms::Realms;

/// Closes the connections whose sessions were sent GOODBYE and that have opened no session since, within the time limit
/// of a new connection.
pub async fn close_silent(realms: Arc<Realms>, told: Vec<Weak<Connection>>) {
    tokio::time::sleep(realms.bounds.handshake_timeout).await;
    let joined: Vec<_> = realms.realms();
    let joined: Vec<_> = joined.iter().flat_map(|realm| realm.peers()).collect();
    let joined: Connections = joined.iter().map(|peer| &peer.connection).collect();
    for connection in told.iter().filter_map(Weak::upgrade) {
        if !joined.has(&connection) && !connection.is_closed() {
            report::timed_out(&connection, Cause::NoGoodbye);
            connection.close();
        }
    }
}
