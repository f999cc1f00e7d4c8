//! `crosstie register`: a procedure that echoes, answers with a constant, or runs a command.

use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail};
use clap::ValueEnum;
use crosstie_client::{
    ApplicationError, Arguments, Invocation, InvocationPolicy, RegisterError, RegisterOptions,
    Value, args,
};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::Notify;

use crate::signals::Signals;
use crate::wamp_arguments::{Connection, Match, json, print_error, to_object, value};

/// Register a procedure and answer its calls until interrupted (Ctrl-C).
///
/// After a lost connection it reconnects and registers again. The exit code is 1 after a refusal, and 2 if the router
/// cannot be reached.
#[derive(clap::Args)]
pub(crate) struct RegisterArguments {
    /// URI of the procedure, or a pattern with --match.
    procedure: String,
    #[command(flatten)]
    answer: AnswerArguments,
    #[command(flatten)]
    connection: Connection,
    /// Matching policy; in a wildcard pattern an empty component matches any one component.
    #[arg(long = "match", value_enum, default_value_t)]
    match_policy: Match,
    /// Selection of the callee if several register.
    #[arg(long, value_enum, default_value_t)]
    invoke: Invoke,
    /// Replace callees that have registered the procedure.
    #[arg(long)]
    force: bool,
    /// Calls answered concurrently; further ones wait.
    #[arg(long, value_name = "N", default_value_t = 16)]
    concurrency: u32,
    /// Stop after this many calls.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct AnswerArguments {
    /// Answer with the call's own arguments.
    #[arg(long)]
    echo: bool,
    /// Answer with this value: JSON, or other text as text.
    #[arg(long, value_name = "JSON", value_parser = value)]
    answer: Option<Value>,
    /// Answer with the output of a shell command.
    ///
    /// The command gets the call as a line of JSON, {"args": […], "kwargs": {…}}, on standard input, and the
    /// procedure's URI in CROSSTIE_PROCEDURE. Its output is the result: JSON if valid, else text. A failure is the
    /// error crosstie.error.command_failed, with the command's standard error.
    #[arg(long, value_name = "CMD")]
    command: Option<String>,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Invoke {
    #[default]
    Single,
    First,
    Last,
    Roundrobin,
    Random,
    /// The callee with the fewest open calls; not every router supports it
    LeastBusy,
    /// The same callee for all calls of a caller; not every router supports it
    Sticky,
}

/// The kind of answer.
enum Answer {
    Echo,
    Constant(Arguments),
    Command(String),
}

/// Maximum size of a command's output as a result, in bytes.
const OUTPUT_BYTES_MAX: u64 = 16 << 20;
/// Maximum size of a failed command's error output as an error's argument, in bytes.
const COMPLAINT_BYTES_MAX: u64 = 16 << 10;

pub(crate) async fn run(arguments: RegisterArguments) -> anyhow::Result<ExitCode> {
    let procedure = arguments.procedure;
    let client = arguments.connection.connect_to_stay().await?;
    let mut signals = Signals::catch()?;
    let mut options = RegisterOptions::default();
    options.match_policy = arguments.match_policy.into();
    options.invoke = arguments.invoke.into();
    options.running_max = arguments.concurrency;
    options.force_reregister = arguments.force;
    let answer = Arc::new(Answer::from(arguments.answer));
    let calls = Arc::new(Countdown::new(arguments.count));
    let handler = {
        let calls = Arc::clone(&calls);
        move |invocation| {
            let (answer, calls) = (Arc::clone(&answer), Arc::clone(&calls));
            async move {
                if !calls.take() {
                    return Err(ApplicationError::new("wamp.error.unavailable", ()));
                }
                answer.answer(invocation).await
            }
        }
    };
    let registered = client.register_with(&procedure, options, handler).await;
    let mut registration = match registered {
        Ok(registration) => registration,
        Err(RegisterError::Refused(error)) => {
            print_error(&error);
            client.leave().await;
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => bail!(error),
    };
    complain!("crosstie: registered {procedure}");
    tokio::select! {
        biased;
        () = calls.wait() => {}
        _ = signals.next() => {}
        cause = client.ended() => bail!(cause),
        () = registration.ended() => {
            complain!("crosstie: another client has taken {procedure}");
            client.leave().await;
            return Ok(ExitCode::FAILURE);
        }
    }
    tokio::select! {
        // Without a session there is nothing to unregister.
        _ = registration.unregister() => {}
        // After a second signal, calls that are still being answered fail.
        _ = signals.next() => {}
    }
    client.leave().await;
    Ok(ExitCode::SUCCESS)
}

/// The remaining number of calls.
struct Countdown {
    left: Option<AtomicU64>,
    over: Notify,
}

impl Countdown {
    fn new(count: Option<u64>) -> Self {
        let countdown = Self {
            left: count.map(AtomicU64::new),
            over: Notify::new(),
        };
        if count == Some(0) {
            countdown.over.notify_one();
        }
        countdown
    }

    /// Takes one; `false` if none is left.
    fn take(&self) -> bool {
        let Some(left) = &self.left else {
            return true;
        };
        let relaxed = Ordering::Relaxed;
        let taken = left.fetch_update(relaxed, relaxed, |left| left.checked_sub(1));
        if taken == Ok(1) {
            self.over.notify_one();
        }
        taken.is_ok()
    }

    /// Waits until the last one is taken.
    async fn wait(&self) {
        self.over.notified().await;
    }
}

impl Answer {
    async fn answer(&self, invocation: Invocation) -> Result<Arguments, ApplicationError> {
        match self {
            Self::Echo => Ok(invocation.arguments),
            Self::Constant(arguments) => Ok(arguments.clone()),
            Self::Command(command) => run_command(command, &invocation).await,
        }
    }
}

/// Runs the command for one call. If the call is cancelled this is dropped, and the command is killed.
async fn run_command(
    command: &str,
    invocation: &Invocation,
) -> Result<Arguments, ApplicationError> {
    let failed = |error: anyhow::Error| command_failed(&format!("{error:#}"), None);
    let mut input = to_object(&invocation.arguments).map_err(failed)?;
    input.push('\n');
    let outcome = pipe(command, invocation.procedure(), input.as_bytes());
    let Outcome {
        success,
        status,
        output,
        complaint,
    } = outcome.await.map_err(failed)?;
    if !success {
        return Err(command_failed(&complaint, status));
    }
    let text = output.trim_end_matches(['\n', '\r']);
    Ok(match json(text) {
        Ok(value) => args![value],
        Err(_) if text.is_empty() => args![],
        Err(_) => args![text],
    })
}

fn command_failed(complaint: &str, status: Option<i32>) -> ApplicationError {
    let uri = "crosstie.error.command_failed";
    ApplicationError::new(uri, args![complaint.trim_end(); status = status])
}

struct Outcome {
    success: bool,
    /// `None`: a signal ended it.
    status: Option<i32>,
    output: String,
    complaint: String,
}

async fn pipe(command: &str, procedure: &str, input: &[u8]) -> anyhow::Result<Outcome> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env("CROSSTIE_PROCEDURE", procedure)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .context("cannot run sh")?;
    let _group = Group(child.id());
    let stdin = child.stdin.take();
    let feeding = async {
        if let Some(mut stdin) = stdin {
            // A command need not read its input.
            let _ = stdin.write_all(input).await;
        }
    };
    let output = read(child.stdout.take(), OUTPUT_BYTES_MAX);
    let complaint = read(child.stderr.take(), COMPLAINT_BYTES_MAX);
    let (status, (), output, complaint) = tokio::join!(child.wait(), feeding, output, complaint);
    let (status, output) = (status?, output?);
    if output.len() as u64 > OUTPUT_BYTES_MAX {
        bail!("the command printed more than {OUTPUT_BYTES_MAX} bytes");
    }
    Ok(Outcome {
        success: status.success(),
        status: status.code(),
        output: String::from_utf8_lossy(&output).into_owned(),
        complaint: String::from_utf8_lossy(&complaint?).into_owned(),
    })
}

/// A shell and its descendants, by the shell's process id. It is killed when its answer is not wanted any more; after
/// the command's end, its background processes are killed too.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        let leader = self
            .0
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        if let Some(leader) = leader {
            // Mostly none are left.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Reads one byte more than the maximum, then closes the pipe, which ends a command that goes on printing.
async fn read(stream: Option<impl AsyncRead + Unpin>, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(most + 1).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

impl From<AnswerArguments> for Answer {
    fn from(arguments: AnswerArguments) -> Self {
        match arguments {
            AnswerArguments {
                command: Some(command),
                ..
            } => Self::Command(command),
            AnswerArguments {
                answer: Some(value),
                ..
            } => Self::Constant(args![value]),
            // One of the three is given.
            _ => Self::Echo,
        }
    }
}

impl From<Invoke> for InvocationPolicy {
    fn from(name: Invoke) -> Self {
        match name {
            Invoke::Single => Self::Single,
            Invoke::First => Self::First,
            Invoke::Last => Self::Last,
            Invoke::Roundrobin => Self::RoundRobin,
            Invoke::Random => Self::Random,
            Invoke::LeastBusy => Self::LeastBusy,
            Invoke::Sticky => Self::Sticky,
        }
    }
}
