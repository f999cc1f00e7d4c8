//! Decides whether a client may open a vhost, by permissions and limits of run time. For a replicated vhost the node that owns it decides.

use std::sync::Arc;

use crosstie_amqp::ReplyCode;
use crosstie_amqp::method::ConnectionOpen;
use crosstie_auth::Permissions;

use crate::broker::Broker;
use crate::let_in::LetIn;
use crate::metadata::Seat;
use crate::splice::Account;
use crate::turned_away::TurnedAway;

impl Broker {
    /// The permissions of a user in a vhost; `None`: the user may not open it. If another node has the vhost, or no node,
    /// the user may do nothing until the owner has decided.
    pub(crate) fn permissions_to_open(&self, user: &str, vhost: &str) -> Option<Arc<Permissions>> {
        let users = self.users.now();
        let own = users.permissions(user, vhost).map(Arc::clone);
        let is_decided_elsewhere = || self.metadata.now().is_elsewhere(vhost);
        own.or_else(|| is_decided_elsewhere().then(|| Arc::new(Permissions::none())))
    }

    /// Decides about a client that enters a replicated vhost here: it may have waited for an owner.
    pub(crate) fn decide(&self, client: &mut LetIn) -> Result<(), TurnedAway> {
        let is_replicated = self.replicated_of(&client.vhost).is_some();
        if !is_replicated || client.rights.is_some() {
            return Ok(());
        }
        let refused = |text: String, cause| {
            let code = ReplyCode::NotAllowed;
            TurnedAway::of::<ConnectionOpen<'_>>(code, &text).because(cause)
        };
        let (user, vhost) = (
            Arc::clone(&client.client.about.user),
            Arc::clone(&client.vhost),
        );
        client.seat.leave();
        let seat = self.take_seat(&user, &vhost);
        client.seat = seat.map_err(|text| refused(text, "limit"))?;
        let permissions = self.permissions_of(&user, &vhost);
        client.permissions =
            permissions.ok_or_else(|| refused(not_allowed(&user, &vhost), "vhost_not_allowed"))?;
        Ok(())
    }

    /// Decides about a client that another node brings: returns its permissions and its seat, or the text for it. Without
    /// permissions, those that the other node has sent are valid: this node does not know the user.
    pub(crate) fn decide_for_other(
        &self,
        account: &Account,
    ) -> Result<(Option<Arc<Permissions>>, Seat), String> {
        let Account { user, vhost, .. } = account;
        if !account.is_owner_to_decide {
            return Ok((None, self.take_any_seat(user, vhost)));
        }
        let permissions = self.permissions_of(user, vhost);
        // The other node may do nothing for it either.
        let sends_none = || account.permissions == Permissions::none().patterns();
        if permissions.is_none() && (self.users.now().find(user).is_some() || sends_none()) {
            return Err(not_allowed(user, vhost));
        }
        Ok((permissions, self.take_seat_of_vhost(user, vhost)?))
    }

    fn permissions_of(&self, user: &str, vhost: &str) -> Option<Arc<Permissions>> {
        self.users.now().permissions(user, vhost).map(Arc::clone)
    }
}

/// RabbitMQ's text for a client.
pub(crate) fn not_allowed(user: &str, vhost: &str) -> String {
    format!("access to vhost '{vhost}' refused for user '{user}'")
}
