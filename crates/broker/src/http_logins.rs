//! Logins of HTTP clients: by the same users as AMQP clients, and slowed alike.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crosstie_auth::{Guesses, User};
use crosstie_transport::Connection;

use super::broker::Broker;
use super::logins::PLACE_INTERVAL;
use super::negotiation::is_loopback;

/// The user with that name and password, or the reason for the log. The answer to a wrong password is late, as an AMQP
/// client's is. Needs a runtime with timers.
pub async fn log_in(
    broker: &Broker,
    connection: &Connection,
    name: &str,
    password: &[u8],
) -> Result<Arc<User>, String> {
    let logins = &broker.logins;
    let began = Instant::now();
    let wait_max = Duration::from_millis(Guesses::PLACE_WAIT_MAX_MS);
    let guess = logins.guess(connection, name, password);
    let mut is_first = true;
    while !logins.may_look(guess) {
        if std::mem::take(&mut is_first) {
            logins.delayed.fetch_add(1, Ordering::Relaxed);
        }
        if began.elapsed() >= wait_max {
            return Err("too many failed attempts to log in are waiting for their answers".into());
        }
        tokio::time::sleep(PLACE_INTERVAL).await;
    }
    let users = broker.users.now();
    let found = users.authenticate(name, password, is_loopback(connection.peer()));
    match found {
        Ok(user) => {
            logins.note_right(guess);
            Ok(user)
        }
        Err(refused) => {
            logins.failed.fetch_add(1, Ordering::Relaxed);
            let delay = logins.note_wrong(guess);
            let left = delay.saturating_sub(began.elapsed());
            if !left.is_zero() {
                logins.delayed.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(left).await;
            }
            Err(refused.to_string())
        }
    }
}
