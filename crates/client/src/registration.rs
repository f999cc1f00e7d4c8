//! Procedures that this client offers.

use std::sync::Arc;

use crosstie_wamp::{InvocationPolicy, MatchPolicy};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use crate::arguments::Arguments;
use crate::client::Client;
use crate::error::{ApplicationError, Failure, RegisterError};
use crate::invocation::{Delivery, Invocation};
use crate::session::ListenerKey;
use crate::shared::{Listener, ListenerKind, Shared};
use crate::waiter::Reply;

/// The options of a registration and its handlers.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct RegisterOptions {
    /// How invoked URIs match the registered one.
    pub match_policy: MatchPolicy,
    /// The choice of the callee, if several may register.
    pub invoke: InvocationPolicy,
    /// Whether the handler enforces the caller's timeout, instead of the router. Default: no.
    pub forward_timeout: bool,
    /// Maximum number of concurrent invocations that the router sends, on routers with this option. Further calls reach
    /// another callee, or get an error. Default: 0, no limit.
    pub concurrency: u32,
    /// Whether other callees lose an existing registration of the procedure, on routers with this option. Also applies
    /// after a reconnection. Default: no.
    pub force_reregister: bool,
    /// Maximum number of concurrent handlers. Default: 64.
    pub running_max: u32,
    /// Maximum number of invocations that wait for a handler; a further one is answered at once with
    /// `wamp.error.unavailable`. Default: 1,024.
    pub waiting_max: usize,
    /// Maximum number of chunks of one progressive call that wait for its handler; a further one is answered with
    /// `wamp.error.unavailable`. Default: 64.
    pub chunks_max: usize,
    /// The treatment of handlers of cancelled calls.
    pub on_interrupt: OnInterrupt,
}

/// More concurrent handlers than any process has room for, and fewer than a semaphore can count.
const RUNNING_MOST: u32 = 1 << 24;

/// The treatment of a handler whose call was cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnInterrupt {
    /// Its future is dropped, and the call is answered with the reason's error.
    #[default]
    Drop,
    /// It continues, and may check [`Invocation::interrupts`].
    Notify,
}

impl Default for RegisterOptions {
    fn default() -> Self {
        Self {
            match_policy: MatchPolicy::default(),
            invoke: InvocationPolicy::default(),
            forward_timeout: false,
            concurrency: 0,
            force_reregister: false,
            running_max: 64,
            waiting_max: 1024,
            chunks_max: 64,
            on_interrupt: OnInterrupt::default(),
        }
    }
}

/// A registered procedure. Dropping this does not unregister the procedure: it stays registered while its client is
/// joined.
#[derive(Debug)]
pub struct Registration {
    client: Client,
    key: ListenerKey,
    serving: JoinHandle<()>,
}

impl Registration {
    /// Waits until the procedure is not served any more: another client has taken the registration
    /// (`force_reregister`), or this client has ended.
    pub async fn ended(&mut self) {
        if !self.serving.is_finished() {
            // Only a runtime that shuts down cancels it.
            let _ = (&mut self.serving).await;
        }
    }

    /// Unregisters the procedure, and waits until every running handler has answered; so no handler of this procedure
    /// may wait for it.
    pub async fn unregister(self) -> Result<(), RegisterError> {
        let Self {
            client,
            key,
            mut serving,
        } = self;
        let answered = client.ask(|active, _, waiter| {
            let out = &mut active.outgoing;
            let unknown = active.session.unregister(key, Some(waiter), out)?;
            if let Some(waiter) = unknown {
                waiter.settle(Ok(Reply::Done));
            }
            Ok(())
        });
        let answer = answered.await;
        // This ends the queue, and with it the serving task.
        client.shared().remove_listener(key);
        if !serving.is_finished() {
            let _ = (&mut serving).await;
        }
        match answer {
            // Without a session nothing is registered, and nothing will be restored.
            Ok(_) | Err(Failure::Disconnected(_)) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}

impl Client {
    /// Registers a procedure: `handler` is called for each invocation, in a task of its own.
    ///
    /// The caller gets an ERROR if the handler fails or panics. After a reconnection the procedure is registered again.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = crosstie_node::test_node()?;
    /// # let url = node.url();
    /// # let client = crosstie_client::Client::connect(url).await?;
    /// use crosstie_client::{ApplicationError, args};
    ///
    /// client
    ///     .register("com.example.add", |invocation| async move {
    ///         let wrong = |error: crosstie_client::ArgumentError| {
    ///             ApplicationError::new("wamp.error.invalid_argument", args![error.to_string()])
    ///         };
    ///         let a: i64 = invocation.arguments.argument(0).map_err(wrong)?;
    ///         let b: i64 = invocation.arguments.argument(1).map_err(wrong)?;
    ///         Ok(args![a + b])
    ///     })
    ///     .await?;
    /// # client.call("com.example.add", (2, 3)).await?;
    /// # client.leave().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn register<H, F>(
        &self,
        procedure: &str,
        handler: H,
    ) -> Result<Registration, RegisterError>
    where
        H: Fn(Invocation) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Arguments, ApplicationError>> + Send + 'static,
    {
        let options = RegisterOptions::default();
        self.register_with(procedure, options, handler).await
    }

    /// As [`register`](Self::register), with options.
    pub async fn register_with<H, F>(
        &self,
        procedure: &str,
        options: RegisterOptions,
        handler: H,
    ) -> Result<Registration, RegisterError>
    where
        H: Fn(Invocation) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Arguments, ApplicationError>> + Send + 'static,
    {
        let (queue, deliveries) = mpsc::channel(options.waiting_max.max(1));
        let wire_options = crosstie_wamp::RegisterOptions {
            match_policy: options.match_policy,
            invoke: options.invoke,
            forward_timeout: options.forward_timeout,
            concurrency: options.concurrency,
            force_reregister: options.force_reregister,
            nkey: Default::default(),
            is_forwarded: false,
            unsupported: None,
        };
        let kind = ListenerKind::Registration {
            procedure: procedure.into(),
            options: wire_options.clone(),
            chunks_max: options.chunks_max.max(1),
            queue,
        };
        let attempt = Attempt {
            shared: Arc::clone(self.shared()),
            key: self.shared().new_key(),
            accepted: false,
        };
        let key = attempt.key;
        let answer = self.ask(|active, listeners, waiter| {
            let out = &mut active.outgoing;
            let session = &mut active.session;
            session.register(key, procedure, wire_options, waiter, out)?;
            listeners.insert(key, Listener { kind, asked: true });
            Ok(())
        });
        answer.await?;
        attempt.accept();
        Ok(Registration {
            client: self.clone(),
            key,
            serving: tokio::spawn(serve(deliveries, Arc::new(handler), options)),
        })
    }
}

/// A registration that the router has not accepted yet. Dropping it removes the listener.
struct Attempt {
    shared: Arc<Shared>,
    key: ListenerKey,
    accepted: bool,
}

impl Attempt {
    fn accept(mut self) {
        self.accepted = true;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.accepted {
            return;
        }
        self.shared.remove_listener(self.key);
        self.shared.send_now(|active| {
            let out = &mut active.outgoing;
            active.session.unregister(self.key, None, out)?;
            Ok(())
        });
    }
}

/// Runs the handler for each invocation, so many at once, in the order of arrival; ends when the last one has answered.
async fn serve<H, F>(
    mut deliveries: mpsc::Receiver<Delivery>,
    handler: Arc<H>,
    options: RegisterOptions,
) where
    H: Fn(Invocation) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Arguments, ApplicationError>> + Send + 'static,
{
    let running_max = options.running_max.clamp(1, RUNNING_MOST);
    let running = Arc::new(Semaphore::new(running_max as usize));
    // The semaphore is never closed.
    while let Ok(permit) = Arc::clone(&running).acquire_owned().await {
        let Some(delivery) = deliveries.recv().await else {
            drop(permit);
            break;
        };
        let handler = Arc::clone(&handler);
        tokio::spawn(async move {
            run(delivery, &*handler, options.on_interrupt).await;
            drop(permit);
        });
    }
    let _ = running.acquire_many(running_max).await;
}

async fn run<H, F>(delivery: Delivery, handler: &H, on_interrupt: OnInterrupt)
where
    H: Fn(Invocation) -> F,
    F: Future<Output = Result<Arguments, ApplicationError>>,
{
    let Delivery {
        invocation,
        unanswered,
    } = delivery;
    let mut interrupts = invocation.interrupts();
    let outcome = match on_interrupt {
        OnInterrupt::Notify => handler(invocation).await,
        OnInterrupt::Drop => tokio::select! {
            biased;
            interrupt = interrupts.interrupted() => Err(interrupt.into()),
            outcome = async { handler(invocation).await } => outcome,
        },
    };
    unanswered.answer(outcome).await;
}
