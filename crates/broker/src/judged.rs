//! The outcome of an AMQP client's attempt to log in: decided here, or by another server later.

use std::sync::Arc;

use crosstie_auth::Origin;
use crosstie_auth::sasl::Response;
use crosstie_front::addresses::origin;
use crosstie_transport::Connection;

use super::backends::{Attempt, LoggedIn, NotLoggedIn};
use super::broker::Broker;
use super::logins::Later;

/// The outcome of an attempt to log in.
pub(super) enum Judged {
    Now(Result<LoggedIn, NotLoggedIn>),
    /// Other servers are asked.
    Later(Later<Result<LoggedIn, NotLoggedIn>>),
    /// Too many of the client's origin are asked for.
    Crowded,
}

/// Authenticates a client; `certified` is the name in its certificate.
pub(super) fn authenticate(
    response: Response<'_>,
    certified: Option<&str>,
    connection: &Arc<Connection>,
    broker: &Broker,
) -> Judged {
    let (name, password) = match response {
        Response::Password { name, password } => (name, Some(password)),
        Response::External => (certified.unwrap_or_default(), None),
    };
    let is_loopback = origin(connection.peer()) == Origin::Local;
    let attempt = Attempt {
        name,
        password,
        is_loopback,
    };
    let (backends, users) = (broker.backends(), broker.users.now());
    let undecided = match backends.log_in_now(&attempt, &users) {
        Ok(logged_in) => return Judged::Now(Ok(logged_in)),
        Err(undecided) => undecided,
    };
    if let Some(why) = backends.refusal(&undecided) {
        return Judged::Now(Err(why));
    }
    let Some(place) = backends.place(connection) else {
        return Judged::Crowded;
    };
    let (name, password) = (name.to_owned(), password.map(<[u8]>::to_vec));
    Judged::Later(broker.logins.later(connection, async move {
        let attempt = Attempt {
            name: &name,
            password: password.as_deref(),
            is_loopback,
        };
        let decided = backends.log_in(&attempt, &users, undecided).await;
        drop(place);
        decided
    }))
}
