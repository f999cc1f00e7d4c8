//! The will of a client that has left: published by the client's own session, which ends behind it.
//!
//! So the realm authorizes the will as any publication of the client, and discloses the client as its publisher. A will
//! with a delay comes after its session; the router's own session publishes that one, as the realm has permitted it with
//! CONNECT.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_front::end_reason::EndReason;
use crosstie_wamp::PublishOptions;

use crate::bridge::options;
use crate::crossing::{Converted, Dynamic, converted};
use crate::figures::{Dropped, Figures};
use crate::ground::Ground;
use crate::names;
use crate::own_content::OwnContent;
use crate::payloads::Arguments;
use crate::talk::{Said, Talk};

/// A will, and the session that publishes it.
struct LastWord {
    will: OwnContent,
    talk: Talk,
    ground: Arc<Ground>,
}

/// The next step of a will.
enum Next {
    Done(Said),
    /// A procedure converts the payload.
    Decode(Dynamic, String),
}

/// What is due before the will is published.
enum Wait {
    /// The realm decides on what the client has sent before.
    Before,
    /// The realm decides on the will.
    Asked,
    Decode(Dynamic, String),
}

/// Time for procedures that decide on a will and convert it.
const WILL_MAX: Duration = Duration::from_secs(60);

/// Publishes a will, then ends the session.
pub(crate) fn publish(will: OwnContent, talk: Talk, ground: &Arc<Ground>, why: EndReason) {
    let ground = Arc::clone(ground);
    let mut word = LastWord { will, talk, ground };
    // The realm may still decide on what the client has sent before.
    if word.talk.waits() {
        return word.publish_later(Wait::Before, why);
    }
    match word.begin() {
        Next::Done(Said::Waits) => word.publish_later(Wait::Asked, why),
        Next::Done(said) => word.conclude(said, why),
        Next::Decode(dynamic, uri) => word.publish_later(Wait::Decode(dynamic, uri), why),
    }
}

impl LastWord {
    /// Asks the realm, unless the payload is converted first.
    fn begin(&mut self) -> Next {
        let (topic, payload) = (&self.will.topic, &self.will.payload);
        let at = (Instant::now(), payload.len());
        let Some(uri) = names::uri(topic) else {
            Figures::get().count_dropped(Dropped::NoUri);
            let uri = names::nearest_uri(topic);
            return Next::Done(self.talk.may_publish(at, &uri, self.options()));
        };
        let mapping = &self.ground.endpoint.options.mapping;
        let realm = self.ground.space.bridge.realm();
        let limits = &self.ground.limits();
        Next::Done(match converted(mapping, realm, &uri, payload, limits) {
            Converted::Arguments(arguments) => self.route(at, &uri, &arguments),
            Converted::Stays => self.talk.may_publish(at, &uri, self.options()),
            Converted::Unfit => unfit(),
            Converted::Later(dynamic) => return Next::Decode(dynamic, uri),
        })
    }

    fn route(&mut self, at: (Instant, usize), uri: &str, arguments: &Arguments) -> Said {
        let options = self.options();
        self.talk.publish_arguments(at, uri, options, arguments)
    }

    fn options(&self) -> PublishOptions {
        options(&self.will.as_content())
    }

    fn publish_later(mut self, wait: Wait, why: EndReason) {
        let keeper = self.ground.space.bridge.realms().door.keeper().clone();
        keeper.spawn(async move {
            let said = tokio::time::timeout(WILL_MAX, self.go_on(wait)).await;
            let said = said.unwrap_or(Said::Refused(crosstie_mqtt::ReasonCode::NotAuthorized));
            self.conclude(said, why);
            crosstie_transport::uncork();
        });
    }

    /// Awaits procedures until the realm has decided.
    async fn go_on(&mut self, wait: Wait) -> Said {
        let next = match wait {
            Wait::Asked => Next::Done(Said::Waits),
            Wait::Decode(dynamic, uri) => Next::Decode(dynamic, uri),
            Wait::Before => match self.answered().await {
                Said::Over => Next::Done(Said::Over),
                _ => self.begin(),
            },
        };
        let said = match next {
            Next::Done(said) => said,
            Next::Decode(dynamic, uri) => self.decode(&dynamic, &uri).await,
        };
        match said {
            Said::Waits => self.answered().await,
            said => said,
        }
    }

    /// The answer that the session waits for.
    async fn answered(&mut self) -> Said {
        loop {
            self.talk.client.mailbox.reading().await;
            match self.talk.go_on() {
                Said::Waits => tokio::task::yield_now().await,
                said => return said,
            }
        }
    }

    async fn decode(&mut self, dynamic: &Dynamic, uri: &str) -> Said {
        let space = &self.ground.space;
        let decoded = space
            .decoded(dynamic, (uri, &self.will.topic), &self.will.payload)
            .await;
        match decoded {
            Some(arguments) => {
                let at = (Instant::now(), self.will.payload.len());
                self.route(at, uri, &arguments)
            }
            None => unfit(),
        }
    }

    fn conclude(mut self, said: Said, why: EndReason) {
        let space = &self.ground.space;
        let publish = || {
            let client_id = self.talk.client.client_id();
            let will = &self.will.as_content();
            space.enter(|space, now, outbox| {
                space.publish_will_of(now, client_id, will, outbox);
            });
        };
        match said {
            Said::Allowed => publish(),
            // The session was ended before: the realm has permitted the will with CONNECT.
            Said::Over => {
                publish();
                space.publish_own(&self.will, &self.ground.endpoint.options.mapping);
            }
            Said::Refused(_) | Said::Waits => Figures::get().count_dropped(Dropped::Denied),
        }
        self.talk.leave(why);
    }
}

fn unfit() -> Said {
    Figures::get().count_dropped(Dropped::Payload);
    Said::Refused(crosstie_mqtt::ReasonCode::PayloadFormatInvalid)
}
