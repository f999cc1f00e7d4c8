//! Ids (WAMP basic profile, "IDs"): integers from 1 to 2^53, in one of three scopes.

use std::fmt;

/// The largest id: 2^53, the largest integer that every peer's number type holds exactly.
pub const ID_MAX: u64 = 1 << 53;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// Global scope: drawn at random for each session.
    SessionId
}
id! {
    /// Global scope: drawn at random for each publication.
    PublicationId
}
id! {
    /// Router scope: one for all sessions that share a registration.
    RegistrationId
}
id! {
    /// Router scope: one for all subscribers of the same topic and matching policy.
    SubscriptionId
}
id! {
    /// Session scope: counted up by its sender from 1.
    RequestId
}
