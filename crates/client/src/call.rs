//! Calls of procedures.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crosstie_wamp::{CancelMode, Dict, RequestId, SessionId};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::arguments::Arguments;
use crate::client::Client;
use crate::error::{CallError, Disconnected, Failure};
use crate::waiter::{Reply, Waiter};

/// The options of a call.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct CallOptions {
    /// Time limit, after which the call fails with [`CallError::TimedOut`]. The router enforces it if it announces that
    /// feature; otherwise this client does, and cancels the call.
    pub timeout: Option<Duration>,
    /// Whether the callee may learn the caller's identity; the router decides.
    pub disclose_me: Option<bool>,
    /// Receive progressive results. Use it with [`Client::start_call`] only.
    pub receive_progress: bool,
    /// Further chunks of arguments follow, by [`Call::send`] and [`Call::finish`].
    pub progress: bool,
    /// Maximum number of progressive results that wait to be taken; a further one cancels the call. Default: 1,024.
    pub results_max: usize,
    /// The mode in which a call is cancelled if its future or [`Call`] is dropped before its result. Default:
    /// [`CancelMode::KillNoWait`].
    pub on_drop: CancelMode,
    /// Further attributes that the router forwards: payload passthru mode's, and custom ones that begin with an
    /// underscore.
    pub passthru: Dict,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            timeout: None,
            disclose_me: None,
            receive_progress: false,
            progress: false,
            results_max: 1024,
            on_drop: CancelMode::default(),
            passthru: Dict::new(),
        }
    }
}

/// A pending call. Dropping it before its result cancels the call.
#[derive(Debug)]
pub struct Call {
    client: Client,
    procedure: String,
    options: CallOptions,
    session: SessionId,
    request: RequestId,
    results: Results,
    /// This client's time limit, if the router does not enforce it.
    deadline: Option<Instant>,
    over: bool,
}

/// The queue of results.
#[derive(Debug)]
enum Results {
    Last(oneshot::Receiver<Result<Reply, Failure>>),
    All {
        results: mpsc::Receiver<Result<Reply, Failure>>,
        overflow: Arc<AtomicBool>,
    },
}

impl Results {
    fn channel(options: &CallOptions) -> (Waiter, Self) {
        if !options.receive_progress {
            let (sender, receiver) = oneshot::channel();
            return (Waiter::Answer(sender), Self::Last(receiver));
        }
        // One place more, so that the last result always has room.
        let (sender, results) = mpsc::channel(options.results_max.saturating_add(1));
        let overflow = Arc::new(AtomicBool::new(false));
        let waiter = Waiter::Results {
            results: sender,
            overflow: Arc::clone(&overflow),
        };
        (waiter, Self::All { results, overflow })
    }

    async fn next(&mut self) -> Option<Result<Reply, Failure>> {
        match self {
            Self::Last(result) => result.await.ok(),
            Self::All { results, .. } => results.recv().await,
        }
    }

    fn have_overflown(&self) -> bool {
        match self {
            Self::Last(_) => false,
            Self::All { overflow, .. } => overflow.load(Ordering::Relaxed),
        }
    }
}

/// A reply to a call.
#[derive(Clone, Debug)]
pub enum CallReply {
    /// A progressive result: more follow.
    Progress(Arguments),
    /// The result.
    Result(Arguments),
}

impl Client {
    /// Calls a procedure and waits for its result.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = crosstie_node::test_node()?;
    /// # let url = node.url();
    /// # let client = crosstie_client::Client::connect(url).await?;
    /// # client.register("com.example.add", async |_| Ok(crosstie_client::args![5])).await?;
    /// let sum = client.call("com.example.add", (2, 3)).await?;
    /// assert_eq!(sum.argument::<i64>(0)?, 5);
    /// # client.leave().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call(
        &self,
        procedure: &str,
        arguments: impl Into<Arguments>,
    ) -> Result<Arguments, CallError> {
        let options = CallOptions::default();
        self.call_with(procedure, arguments, options).await
    }

    /// As [`call`](Self::call), with options.
    pub async fn call_with(
        &self,
        procedure: &str,
        arguments: impl Into<Arguments>,
        options: CallOptions,
    ) -> Result<Arguments, CallError> {
        let call = self.start_call(procedure, arguments, options).await?;
        call.result().await
    }

    /// Calls a procedure with progressive results or progressive arguments.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = crosstie_node::test_node()?;
    /// # let url = node.url();
    /// # let client = crosstie_client::Client::connect(url).await?;
    /// # client.register("com.example.report", async |_| Ok(().into())).await?;
    /// use crosstie_client::{CallOptions, CallReply};
    ///
    /// let mut options = CallOptions::default();
    /// options.receive_progress = true;
    /// let mut call = client.start_call("com.example.report", (), options).await?;
    /// while let Some(reply) = call.next().await? {
    ///     match reply {
    ///         CallReply::Progress(part) => println!("{:?}", part.args()?),
    ///         CallReply::Result(whole) => println!("done: {:?}", whole.args()?),
    ///     }
    /// }
    /// # drop(call);
    /// # client.leave().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start_call(
        &self,
        procedure: &str,
        arguments: impl Into<Arguments>,
        options: CallOptions,
    ) -> Result<Call, CallError> {
        let arguments = arguments.into();
        let welcome = self.welcome();
        let router_keeps_time =
            welcome.is_some_and(|welcome| welcome.announces("dealer", "call_timeout"));
        let (timeout_ms, deadline) = match options.timeout {
            Some(timeout) if router_keeps_time => {
                // 0 would mean no limit.
                let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
                (timeout_ms.clamp(1, crosstie_wamp::ID_MAX), None)
            }
            Some(timeout) => (0, Instant::now().checked_add(timeout)),
            None => (0, None),
        };
        let (waiter, results) = Results::channel(&options);
        let wire_options = crosstie_wamp::CallOptions {
            timeout_ms,
            ..options.on_wire(options.progress)
        };
        let sent = self.shared().send(|active, _| {
            let session = active.session.id();
            arguments.with_payload(active.outgoing.serializer(), |payload| {
                let out = &mut active.outgoing;
                let calls = &mut active.session;
                let request = calls.call(procedure, wire_options, *payload, waiter, out)?;
                Ok((session, request))
            })?
        });
        let (session, request) = sent.await?;
        Ok(Call {
            client: self.clone(),
            procedure: procedure.to_owned(),
            options,
            session,
            request,
            results,
            deadline,
            over: false,
        })
    }
}

impl Call {
    /// The next result; `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<CallReply>, CallError> {
        if self.over {
            return Ok(None);
        }
        let received = match self.deadline {
            None => self.results.next().await,
            Some(deadline) => {
                let mut waited = pin!(sleep_until(deadline));
                tokio::select! {
                    biased;
                    received = self.results.next() => received,
                    () = &mut waited => {
                        self.cancel(CancelMode::KillNoWait);
                        self.over = true;
                        return Err(CallError::TimedOut);
                    }
                }
            }
        };
        match received {
            Some(Ok(Reply::Progress(arguments))) => Ok(Some(CallReply::Progress(arguments))),
            Some(outcome) => {
                self.over = true;
                if self.results.have_overflown() {
                    let results_max = self.options.results_max;
                    return Err(CallError::Overflow { results_max });
                }
                match outcome? {
                    Reply::Result(arguments) => Ok(Some(CallReply::Result(arguments))),
                    // Only a RESULT answers a CALL, which the session enforces.
                    _ => Ok(None),
                }
            }
            // The session answers all waiters before it is dropped.
            None => {
                self.over = true;
                Err(CallError::Disconnected(Disconnected::Left))
            }
        }
    }

    /// Waits for the final result; progressive ones before it are dropped.
    pub async fn result(mut self) -> Result<Arguments, CallError> {
        loop {
            match self.next().await? {
                Some(CallReply::Progress(_)) => {}
                Some(CallReply::Result(arguments)) => return Ok(arguments),
                None => return Err(CallError::Answered),
            }
        }
    }

    /// Sends a further chunk of arguments; the call must have been started with
    /// [`CallOptions::progress`].
    pub async fn send(&mut self, arguments: impl Into<Arguments>) -> Result<(), CallError> {
        self.send_chunk(arguments.into(), true).await
    }

    /// Sends the last chunk of arguments.
    pub async fn finish(&mut self, arguments: impl Into<Arguments>) -> Result<(), CallError> {
        self.send_chunk(arguments.into(), false).await
    }

    /// Requests the cancellation of the call. The outcome arrives as its result, usually [`CallError::Canceled`].
    pub fn cancel(&mut self, mode: CancelMode) {
        self.client.shared().send_now(|active| {
            if active.session.id() == self.session {
                let out = &mut active.outgoing;
                active.session.cancel(self.request, mode, out)?;
            }
            Ok(())
        });
    }

    async fn send_chunk(&self, arguments: Arguments, more: bool) -> Result<(), CallError> {
        let options = self.options.on_wire(more);
        let sent = self.client.shared().send(|active, _| {
            if active.session.id() != self.session {
                return Ok(false);
            }
            arguments.with_payload(active.outgoing.serializer(), |payload| {
                let out = &mut active.outgoing;
                let (request, procedure) = (self.request, &self.procedure);
                let session = &mut active.session;
                session.call_further(request, procedure, options, *payload, out)
            })?
        });
        match sent.await? {
            true => Ok(()),
            false => Err(CallError::Answered),
        }
    }
}

impl CallOptions {
    fn on_wire(&self, progress: bool) -> crosstie_wamp::CallOptions {
        crosstie_wamp::CallOptions {
            timeout_ms: 0,
            receive_progress: self.receive_progress,
            progress,
            disclose_me: self.disclose_me,
            passthru: Some(self.passthru.clone())
                .filter(|passthru| !passthru.is_empty())
                .map(Box::new),
            sharding: Default::default(),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.over {
            self.cancel(self.options.on_drop);
        }
    }
}
