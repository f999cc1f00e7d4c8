//! How the owner is asked whether it is there: on a subject that names its term, and that nobody else is subscribed to.
//!
//! What it answers is a beat, and is for all. The question is for NATS: where the owner has no connection, the server of who
//! asks says so at once.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use crosstie_jetstream::{Connection, Failed, Subscription};
use tokio::task::JoinHandle;

/// The subscription, and whether it holds.
pub(super) struct Questions {
    subscription: Option<Subscription>,
    /// Whether the server has been asked something behind the subscription, and has answered.
    checking: Option<JoinHandle<bool>>,
    is_heard: bool,
    vhost: Arc<str>,
}

/// Of questions that wait.
const BYTES_MAX: usize = 64 * 1024;

const CHECK_MAX: Duration = Duration::from_secs(5);

impl Questions {
    pub(super) fn begin(connection: &Connection, subject: String, vhost: &Arc<str>) -> Self {
        let subscription = connection.subscribe(&subject, BYTES_MAX).ok();
        let vhost = Arc::clone(vhost);
        let connection = connection.clone();
        // The node does not hear itself, so that nobody hears it: that is an answer, too.
        let check = async move {
            let asked = connection.request(&subject, &[], b"", CHECK_MAX).await;
            matches!(asked, Err(Failed::Nobody))
        };
        Self {
            subscription,
            checking: Some(tokio::spawn(check)),
            is_heard: false,
            vhost,
        }
    }

    /// Whether a question would reach the node: a user may not be allowed to subscribe.
    pub(super) fn are_heard(&self) -> bool {
        self.is_heard
    }

    /// Waits until a beat is to be said; whether that is for something new, which nobody can have happen often.
    pub(super) async fn next(&mut self) -> bool {
        let Some(subscription) = &mut self.subscription else {
            return pending().await;
        };
        tokio::select! {
            checked = checked(&mut self.checking) => {
                self.checking = None;
                self.is_heard = checked && !subscription.is_denied();
                if subscription.is_denied() {
                    let vhost = &self.vhost;
                    tracing::warn!("vhost '{vhost}': the NATS user may not subscribe to what its owner is asked on: others \
                        take it over more slowly when this node is killed");
                }
                true
            }
            question = subscription.next() => {
                if question.is_none() {
                    // The connection has ended, or more waited than may.
                    self.subscription = None;
                    self.is_heard = false;
                }
                false
            }
        }
    }
}

async fn checked(checking: &mut Option<JoinHandle<bool>>) -> bool {
    match checking {
        Some(checking) => checking.await.unwrap_or(false),
        None => pending().await,
    }
}
