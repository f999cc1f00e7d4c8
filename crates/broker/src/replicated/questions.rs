//! Probes to the owner, on a subject that names its term and that only the owner subscribes to.
//!
//! The owner answers with a heartbeat for all nodes. The question is for NATS: if the owner has no connection, the
//! server answers the probing node at once with "no responders".

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use crosstie_jetstream::{Connection, Failed, Subscription};
use tokio::task::JoinHandle;

/// The subscription, and whether it is active.
pub(super) struct Questions {
    subscription: Option<Subscription>,
    /// Whether the server has answered a request behind the subscription.
    checking: Option<JoinHandle<bool>>,
    is_heard: bool,
    vhost: Arc<str>,
}

/// Maximum bytes of waiting probes.
const BYTES_MAX: usize = 64 * 1024;

const CHECK_MAX: Duration = Duration::from_secs(5);

impl Questions {
    pub(super) fn begin(connection: &Connection, subject: String, vhost: &Arc<str>) -> Self {
        let subscription = connection.subscribe(&subject, BYTES_MAX).ok();
        let vhost = Arc::clone(vhost);
        let connection = connection.clone();
        // A node does not receive its own messages, so that "no responders" is the expected answer.
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

    /// Whether a probe would reach the node: its user may lack the permission to subscribe.
    pub(super) fn are_heard(&self) -> bool {
        self.is_heard
    }

    /// Waits until a heartbeat is due. Returns whether it announces a change, which peers cannot cause often.
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
                    tracing::warn!("vhost '{vhost}': NATS denies the subject on which nodes probe the owner: \
                        a takeover takes longer if this node is killed");
                }
                true
            }
            question = subscription.next() => {
                if question.is_none() {
                    // The connection has ended, or too many probes waited.
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
