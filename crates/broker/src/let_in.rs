//! A client with permission to enter a vhost.

use std::sync::Arc;

use crosstie_amqp::Version;
use crosstie_auth::Permissions;

use super::backends::Rights;
use super::client::{About, CHANNELS_MIN, Capabilities, Client, Properties};
use super::metadata::Seat;
use super::splice::Account;

/// A client with permission to enter a vhost: `V` is the vhost's name, or the vhost itself if this node owns it.
pub(super) struct LetIn<V = Arc<str>> {
    pub client: Client,
    pub vhost: V,
    pub permissions: Arc<Permissions>,
    /// The rights that `permissions` follow, if another backend decides on them.
    pub(super) rights: Option<Rights>,
    /// The client may set `user-id` to other users.
    pub(super) is_impersonator: bool,
    pub(super) seat: Seat,
}

impl LetIn {
    pub(super) fn enter<V>(self, vhost: V) -> LetIn<V> {
        LetIn {
            client: self.client,
            vhost,
            permissions: self.permissions,
            rights: self.rights,
            is_impersonator: self.is_impersonator,
            seat: self.seat,
        }
    }
}

impl<V> LetIn<V> {
    /// A client that another node has authenticated, or the reason why this node rejects it. Without permissions of this
    /// node it has those that the other one has sent.
    pub(super) fn passed_on(
        account: Account,
        vhost: V,
        (permissions, seat): (Option<Arc<Permissions>>, Seat),
    ) -> Result<Self, String> {
        let permissions = match permissions {
            Some(permissions) => permissions,
            None => {
                let [configure, write, read] = &account.permissions;
                let parsed = Permissions::parse(configure, write, read);
                Arc::new(parsed.map_err(|e| e.to_string())?)
            }
        };
        let about = About {
            user: account.user,
            name: account.name,
            properties: Properties::of_client(&account.client),
            from: Some(account.from.into()),
            protocol: "",
            mechanism: "",
            channels_max: account.channels_max,
            heartbeat_s: account.heartbeat_s,
        };
        let capabilities = Capabilities {
            authentication_failure_close: account.authentication_failure_close,
            connection_blocked: account.connection_blocked,
            consumer_cancel_notify: account.consumer_cancel_notify,
        };
        Ok(Self {
            client: Client {
                user: None,
                about,
                capabilities,
                version: account.version,
                frame_bytes_max: account.frame_bytes_max,
                channels_max: account.channels_max,
                heartbeat_s: account.heartbeat_s,
            },
            vhost,
            permissions,
            rights: None,
            is_impersonator: account.is_impersonator,
            seat,
        })
    }

    /// A client that needs no authentication: one of the router's own.
    pub(super) fn known(
        about: About,
        (vhost, permissions): (V, Arc<Permissions>),
        (is_impersonator, seat): (bool, Seat),
        frame_bytes_max: u32,
    ) -> Self {
        let capabilities = Capabilities {
            authentication_failure_close: true,
            connection_blocked: false,
            consumer_cancel_notify: true,
        };
        Self {
            client: Client {
                user: None,
                about,
                capabilities,
                version: Version::default(),
                frame_bytes_max,
                channels_max: CHANNELS_MIN,
                heartbeat_s: 0,
            },
            vhost,
            permissions,
            rights: None,
            is_impersonator,
            seat,
        }
    }
}
