//! The refusal of a client that does not enter a vhost.

use crosstie_amqp::ReplyCode;
use crosstie_amqp::method::ConnectionOpen;
use crosstie_front::report;
use crosstie_queues::Fault;

use super::let_in::LetIn;

/// Why a client is refused.
pub(super) struct TurnedAway {
    pub(super) fault: Fault,
    /// The reason for the log, which may have more details than the client's text.
    pub(super) why: String,
    pub(super) tried: Box<Tried>,
    /// The reason as one word.
    pub(super) cause: &'static str,
    /// The client gets no answer.
    pub(super) is_silent: bool,
}

/// The requested user and vhost, for the log of a refusal.
#[derive(Clone, Default)]
pub(super) struct Tried {
    pub user: String,
    pub vhost: String,
    pub(super) mechanism: &'static str,
}

impl TurnedAway {
    /// Refuses a client whose vhost is on no reachable node.
    pub(crate) fn elsewhere(why: &str, client: &LetIn) -> Self {
        Self {
            tried: Box::new(Tried {
                user: client.client.about.user.to_string(),
                vhost: client.vhost.to_string(),
                ..Tried::default()
            }),
            cause: "elsewhere",
            ..Self::of::<ConnectionOpen<'_>>(ReplyCode::ConnectionForced, why)
        }
    }

    pub(super) fn because(self, cause: &'static str) -> Self {
        Self { cause, ..self }
    }

    /// The refusal for the log.
    pub(crate) fn refused(&self) -> report::Refused<'_> {
        report::Refused {
            reason: self.fault.code.name(),
            text: &self.why,
            cause: self.cause,
            who: &self.tried.user,
            place: &self.tried.vhost,
            method: self.tried.mechanism,
        }
    }

    pub(crate) fn of<M: crosstie_amqp::Arguments>(code: ReplyCode, text: &str) -> Self {
        Self::with(code, (M::CLASS_ID, M::METHOD_ID), text)
    }

    pub(crate) fn with(code: ReplyCode, ids: (u16, u16), text: &str) -> Self {
        let fault = Fault::in_method(code, ids, text);
        Self {
            why: fault.text.clone(),
            fault,
            tried: Box::default(),
            cause: "protocol",
            is_silent: false,
        }
    }
}
