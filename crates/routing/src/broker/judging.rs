//! Publications of clients of another protocol that only ask whether they are permitted.

use crosstie_wamp::{PublishOptions, Receivers, SessionId};

/// The options of a publication with which a session that [subscribes elsewhere](crate::ClientFeatures::elsewhere) asks
/// whether it may publish. The realm authorizes and answers it; nothing is retained, recorded or sent. They exclude the
/// only session that is eligible, so that a realm of another release sends it to nobody.
pub fn asking() -> PublishOptions {
    let nobody = || Some(vec![SessionId(1)]);
    PublishOptions {
        receivers: Some(Box::new(Receivers {
            eligible: nobody(),
            exclude: nobody(),
            ..Receivers::default()
        })),
        ..PublishOptions::default()
    }
}

pub(super) fn only_asks(options: &PublishOptions) -> bool {
    let lists = options.receivers.as_deref();
    lists.is_some_and(|lists| lists.eligible.is_some() && lists.eligible == lists.exclude)
}
