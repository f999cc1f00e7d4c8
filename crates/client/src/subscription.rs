//! Topics that this client listens to.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use crosstie_wamp::MatchPolicy;
use futures_core::Stream;
use tokio::sync::mpsc;

use crate::client::Client;
use crate::error::{Failure, SubscribeError};
use crate::event::Event;
use crate::session::ListenerKey;
use crate::shared::{Listener, ListenerKind};
use crate::waiter::Reply;

/// The options of a subscription.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct SubscribeOptions {
    /// How published topics match the subscribed one.
    pub match_policy: MatchPolicy,
    /// Whether to request the retained event, on routers with this option. Also applies after a reconnection. Default:
    /// no.
    pub get_retained: bool,
    /// Maximum number of events that wait to be taken; further ones are dropped and [counted](Subscription::missed).
    /// Default: 1,024.
    pub waiting_max: usize,
}

impl Default for SubscribeOptions {
    fn default() -> Self {
        Self {
            match_policy: MatchPolicy::default(),
            get_retained: false,
            waiting_max: 1024,
        }
    }
}

/// The events of a topic, as a [`Stream`] or with [`next`](Self::next). Dropping it unsubscribes.
///
/// It ends with the client. It continues after a reconnection, without the events published in between.
#[derive(Debug)]
pub struct Subscription {
    client: Client,
    key: ListenerKey,
    events: mpsc::Receiver<Event>,
    missed: Arc<AtomicU64>,
}

impl Client {
    /// Subscribes to a topic.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = crosstie_node::test_node()?;
    /// # let url = node.url();
    /// # let client = crosstie_client::Client::connect(url).await?;
    /// let mut temperatures = client.subscribe("com.example.temperature").await?;
    /// # let publisher = crosstie_client::Client::connect(url).await?;
    /// # publisher.publish("com.example.temperature", (21.5,)).await?;
    /// while let Some(event) = temperatures.next().await {
    ///     println!("{} °C", event.arguments.argument::<f64>(0)?);
    ///     # break;
    /// }
    /// # drop(temperatures);
    /// # publisher.leave().await;
    /// # client.leave().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn subscribe(&self, topic: &str) -> Result<Subscription, SubscribeError> {
        let options = SubscribeOptions::default();
        self.subscribe_with(topic, options).await
    }

    /// As [`subscribe`](Self::subscribe), with options.
    pub async fn subscribe_with(
        &self,
        topic: &str,
        options: SubscribeOptions,
    ) -> Result<Subscription, SubscribeError> {
        let SubscribeOptions {
            match_policy,
            get_retained,
            waiting_max,
        } = options;
        let options = crosstie_wamp::SubscribeOptions {
            match_policy,
            get_retained,
            // The client does not support acknowledged delivery.
            acknowledged_delivery: false,
            nkey: Default::default(),
            is_forwarded: false,
            unsupported: None,
        };
        let (queue, events) = mpsc::channel(waiting_max.max(1));
        let missed = Arc::new(AtomicU64::new(0));
        let kind = ListenerKind::Subscription {
            topic: topic.to_owned(),
            options: options.clone(),
            queue,
            missed: Arc::clone(&missed),
        };
        // From here on dropping it removes everything.
        let subscription = Subscription {
            client: self.clone(),
            key: self.shared().new_key(),
            events,
            missed,
        };
        let key = subscription.key;
        let answer = self.ask(|active, listeners, waiter| {
            let out = &mut active.outgoing;
            let session = &mut active.session;
            session.subscribe(key, topic, options, waiter, out)?;
            listeners.insert(key, Listener { kind, asked: true });
            Ok(())
        });
        answer.await?;
        Ok(subscription)
    }
}

impl Subscription {
    /// The next event; `None` after the end of the client.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Passes each event to `handler`, one after the other, until the client ends.
    pub async fn for_each<F>(mut self, mut handler: impl FnMut(Event) -> F)
    where
        F: Future<Output = ()>,
    {
        while let Some(event) = self.next().await {
            handler(event).await;
        }
    }

    /// Number of events that were dropped because too many were waiting.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Unsubscribes, and waits for the router's answer.
    pub async fn unsubscribe(self) -> Result<(), SubscribeError> {
        let key = self.key;
        let answered = self.client.ask(|active, _, waiter| {
            let out = &mut active.outgoing;
            let shared_or_unknown = active.session.unsubscribe(key, Some(waiter), out)?;
            if let Some(waiter) = shared_or_unknown {
                waiter.settle(Ok(Reply::Done));
            }
            Ok(())
        });
        match answered.await {
            // Without a session there is nothing to end, and nothing will be restored.
            Ok(_) | Err(Failure::Disconnected(_)) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let shared = self.client.shared();
        shared.remove_listener(self.key);
        shared.send_now(|active| {
            let out = &mut active.outgoing;
            active.session.unsubscribe(self.key, None, out)?;
            Ok(())
        });
    }
}

impl Stream for Subscription {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.events.poll_recv(context)
    }
}
