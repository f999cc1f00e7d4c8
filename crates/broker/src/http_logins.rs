//! Logins of HTTP clients: by the same users as AMQP clients, and slowed alike.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crosstie_auth::{Guesses, Origin};
use crosstie_front::addresses::origin;
use crosstie_transport::Connection;

use super::backends::Attempt;
pub use super::backends::{LoggedIn, NotLoggedIn};
use super::broker::Broker;
use super::logins::{Logins, PLACE_INTERVAL};

/// The user with that name and password, or the refusal. The answer to a wrong password is late, as an AMQP
/// client's is. Needs a runtime with timers.
pub async fn log_in(
    broker: &Broker,
    connection: &Connection,
    name: &str,
    password: &[u8],
) -> Result<LoggedIn, NotLoggedIn> {
    let found = log_in_as(broker, connection, name, Some(password)).await;
    if found.is_err() {
        broker.logins.failed_http.fetch_add(1, Ordering::Relaxed);
    }
    found
}

/// The same for a client of any protocol. Without a password the name is proven otherwise, and is no guess.
pub(crate) async fn log_in_as(
    broker: &Broker,
    connection: &Connection,
    name: &str,
    password: Option<&[u8]>,
) -> Result<LoggedIn, NotLoggedIn> {
    let logins = &broker.logins;
    let began = Instant::now();
    let wait_max = Duration::from_millis(Guesses::PLACE_WAIT_MAX_MS);
    let account = Logins::account(connection, name);
    let guess = logins.guess(connection, &account, password.unwrap_or_default());
    let mut is_first = true;
    while password.is_some() && !logins.may_look(guess) {
        if std::mem::take(&mut is_first) {
            logins.delayed.fetch_add(1, Ordering::Relaxed);
        }
        if began.elapsed() >= wait_max {
            let why = "too many failed attempts to log in are waiting for their answers";
            return Err(NotLoggedIn::unanswered(why.to_owned()));
        }
        tokio::time::sleep(PLACE_INTERVAL).await;
    }
    let (backends, users) = (broker.backends(), broker.users.now());
    let attempt = Attempt {
        name,
        password,
        is_loopback: origin(connection.peer()) == Origin::Local,
    };
    let found = match backends.log_in_now(&attempt, &users) {
        Ok(logged_in) => Ok(logged_in),
        Err(undecided) => match backends.refusal(&undecided) {
            Some(refused) => Err(refused),
            None => match backends.place(connection) {
                Some(_place) => backends.log_in(&attempt, &users, undecided).await,
                None => {
                    let why = "too many logins of this address are being checked";
                    Err(NotLoggedIn::unanswered(why.to_owned()))
                }
            },
        },
    };
    match found {
        Ok(logged_in) => {
            if password.is_some() {
                logins.note_right(guess);
            }
            Ok(logged_in)
        }
        Err(refused) => {
            if password.is_none() {
                logins.failed.fetch_add(1, Ordering::Relaxed);
                return Err(refused);
            }
            let delay = logins.note_refused(guess, &refused);
            let left = delay.saturating_sub(began.elapsed());
            if !left.is_zero() {
                logins.delayed.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(left).await;
            }
            Err(refused)
        }
    }
}
