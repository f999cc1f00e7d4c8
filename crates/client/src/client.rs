//! The application's handle: connect, publish, leave.

use std::sync::Arc;

use crosstie_wamp::{PublicationId, PublishOptions};
use tokio::sync::{oneshot, watch};

use crate::arguments::Arguments;
use crate::config::Config;
use crate::connection::Connection;
use crate::drive;
use crate::error::{ConnectError, Disconnected, Failure, PublishError, Unsendable};
use crate::lifecycle::Lifecycle;
use crate::shared::{Active, Listeners, Shared, State};
use crate::waiter::{Reply, Waiter};
use crate::welcome::Welcome;

/// A client of one realm of one router.
///
/// Clones are the same client. It leaves the realm with [`leave`](Self::leave), or when the last clone,
/// [`Subscription`], [`Registration`] and [`Call`] of it is dropped. If the connection is lost, all pending requests
/// fail. The client then reconnects by its [`Backoff`](crate::Backoff), and restores its registrations and
/// subscriptions. Until then every operation fails at once with the reason.
///
/// [`Subscription`]: crate::Subscription
/// [`Registration`]: crate::Registration
/// [`Call`]: crate::Call
#[derive(Clone, Debug)]
pub struct Client {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.leave();
    }
}

impl Client {
    /// Connects to a URL, or by a [`Config`], and joins the realm.
    ///
    /// Call it inside a tokio runtime, which then also runs the connection.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = crosstie_node::test_node()?;
    /// # let url = node.url();
    /// // Such as "ws://127.0.0.1:8080/ws".
    /// let client = crosstie_client::Client::connect(url).await?;
    /// let sessions = client.call("wamp.session.count", ()).await?;
    /// assert_eq!(sessions.argument::<u32>(0)?, 1);
    /// client.leave().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect<C>(config: C) -> Result<Self, ConnectError>
    where
        C: TryInto<Config>,
        ConnectError: From<C::Error>,
    {
        let config = config.try_into()?;
        let joined = drive::join_first(&config).await?;
        let active = Active {
            session: joined.session,
            outgoing: joined.wire.outgoing,
        };
        let shared = Arc::new(Shared::new(config, active, joined.welcome));
        let connection = Connection::new(joined.wire.stream, joined.wire.incoming);
        tokio::spawn(drive::drive(Arc::clone(&shared), connection));
        let handle = Arc::new(Handle { shared });
        Ok(Self { handle })
    }

    /// Publishes without acknowledgement: the router does not report a refusal.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = crosstie_node::test_node()?;
    /// # let url = node.url();
    /// # let client = crosstie_client::Client::connect(url).await?;
    /// client.publish("com.example.news", ("it works",)).await?;
    /// # client.leave().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn publish(
        &self,
        topic: &str,
        arguments: impl Into<Arguments>,
    ) -> Result<(), PublishError> {
        let options = PublishOptions::default();
        self.publish_with(topic, arguments, options).await?;
        Ok(())
    }

    /// Publishes with options. With `acknowledge` waits for the router's answer and returns the publication's id.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = crosstie_node::test_node()?;
    /// # let url = node.url();
    /// # let client = crosstie_client::Client::connect(url).await?;
    /// use crosstie_client::{PublishOptions, args};
    ///
    /// let options = PublishOptions {
    ///     acknowledge: true,
    ///     exclude_me: false,
    ///     ..PublishOptions::default()
    /// };
    /// let id = client.publish_with("com.example.news", args!["x"], options).await?;
    /// assert!(id.is_some());
    /// # client.leave().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn publish_with(
        &self,
        topic: &str,
        arguments: impl Into<Arguments>,
        options: PublishOptions,
    ) -> Result<Option<PublicationId>, PublishError> {
        let arguments = arguments.into();
        let acknowledge = options.acknowledge;
        let publish = |active: &mut Active, waiter| {
            arguments.with_payload(active.outgoing.serializer(), |payload| {
                let out = &mut active.outgoing;
                let session = &mut active.session;
                session.publish(topic, options, *payload, waiter, out)
            })?
        };
        if !acknowledge {
            let sent = self.shared().send(|active, _| publish(active, None));
            sent.await?;
            return Ok(None);
        }
        let answer = self.ask(|active, _, waiter| publish(active, Some(waiter)));
        Ok(match answer.await? {
            Reply::Published(publication) => Some(publication),
            _ => None,
        })
    }

    /// Leaves the realm and closes the connection, within the configured time.
    pub async fn leave(self) {
        self.shared().leave();
        self.ended().await;
    }

    /// Waits for the end of the client: it has left, or has given up reconnecting.
    pub async fn ended(&self) -> Disconnected {
        let mut states = self.state();
        let ended = states.wait_for(|state| matches!(state, State::Ended(_)));
        match ended.await.as_deref() {
            Ok(State::Ended(cause)) => cause.clone(),
            // This handle holds the sender.
            _ => Disconnected::Left,
        }
    }

    /// The client's state, now and in future.
    pub fn state(&self) -> watch::Receiver<State> {
        self.shared().state.subscribe()
    }

    /// The events of this client's life, from now on. [`state`](Self::state) has the present state alone.
    ///
    /// ```no_run
    /// # async fn example(client: crosstie_client::Client) {
    /// use crosstie_client::LifecycleEvent;
    ///
    /// let mut lifecycle = client.lifecycle();
    /// tokio::spawn(async move {
    ///     while let Some(event) = lifecycle.next().await {
    ///         match event {
    ///             LifecycleEvent::Lost { cause } => eprintln!("lost: {cause}"),
    ///             LifecycleEvent::Waiting { attempt, delay } => {
    ///                 eprintln!("attempt {attempt} in {delay:?}");
    ///             }
    ///             LifecycleEvent::Rejoined { .. } => eprintln!("back"),
    ///             _ => {}
    ///         }
    ///     }
    /// });
    /// # }
    /// ```
    pub fn lifecycle(&self) -> Lifecycle {
        Lifecycle::new(self.shared().lifecycle.subscribe())
    }

    /// The router's WELCOME of the current session; `None` without a session.
    pub fn welcome(&self) -> Option<Arc<Welcome>> {
        match &*self.shared().state.borrow() {
            State::Joined(welcome) => Some(Arc::clone(welcome)),
            _ => None,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask(
        &self,
        act: impl FnOnce(&mut Active, &mut Listeners, Waiter) -> Result<(), Unsendable>,
    ) -> Result<Reply, Failure> {
        let (sender, receiver) = oneshot::channel();
        let shared = self.shared();
        let waiter = Waiter::Answer(sender);
        let sent = shared.send(|active, listeners| act(active, listeners, waiter));
        sent.await?;
        // The session answers all waiters before it is dropped.
        receiver
            .await
            .unwrap_or(Err(Failure::Disconnected(Disconnected::Left)))
    }
}
