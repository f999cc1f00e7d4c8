//! `crosstie`: the router, the broker and their instruments, by command line.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use crosstie_node::StartError;

/// Prints a line, or has the error that it could not be. A reader that has gone misses it, and that is all.
macro_rules! say {
    ($($text:tt)*) => {
        crate::output::print_line(&format!($($text)*))
    };
}

/// Says something on standard error, if that can be written to; the standard library's panics if not.
macro_rules! complain {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

mod amqp;
mod analyze;
mod backup;
mod behind_proxy;
mod bench;
mod call;
mod check;
mod cluster;
mod conformance;
mod convert;
mod credentials;
mod embedded;
mod exec_child;
mod explain;
mod groups;
mod init;
mod keys;
mod link;
mod log_sink;
mod logging;
mod management;
mod oslo;
mod output;
mod passwd;
mod publish;
mod queues;
mod register;
mod report;
mod roundtrip;
mod signals;
mod start;
mod status;
mod stop;
mod subscribe;
mod testee;
mod version;
mod wamp_arguments;

use self::output::NotPrinted;
use self::wamp_arguments::Refused;

/// A message router for WAMP, a broker for AMQP 0-9-1, and the instruments that measure them.
#[derive(Parser)]
#[command(name = "crosstie", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a node: on its embedded default, or with its directory's configuration.
    Start(start::StartArguments),
    /// Check a configuration file without starting anything.
    Check(check::CheckArguments),
    Call(call::CallArguments),
    Register(register::RegisterArguments),
    Publish(publish::PublishArguments),
    Subscribe(subscribe::SubscribeArguments),
    /// Measure: this router, another one by its URL, and the machine's own floor.
    #[command(subcommand)]
    Bench(bench::Bench),
    #[command(subcommand)]
    Oslo(oslo::Oslo),
    /// Make one page of the benches' results files.
    Report(report::Arguments),
    /// Sum up handshake logs in the source document's form.
    Analyze(analyze::Arguments),
    /// Run a system to be measured: an echo server for WebSocket or plain streams.
    Testee(testee::Arguments),
    Conformance(conformance::Arguments),
    /// Relay a stream with a delay, as a longer line would.
    Link(link::Arguments),
    /// Make a node directory from a template.
    Init(init::Arguments),
    /// Rewrite a configuration file from JSON to YAML, or the other way.
    Convert(convert::Arguments),
    /// Stop the node of a node directory.
    Stop(stop::Arguments),
    /// Say whether the node of a node directory runs.
    Status(status::Arguments),
    Queues(queues::QueuesArguments),
    Exchanges(queues::ExchangesArguments),
    Bindings(queues::BindingsArguments),
    Connections(queues::ConnectionsArguments),
    Backup(backup::BackupArguments),
    Amqp(amqp::AmqpArguments),
    Sessions(queues::sessions::SessionsArguments),
    /// Several nodes of the same realms: make what they and their servers of NATS need, look at them, try it.
    #[command(subcommand)]
    Cluster(cluster::Cluster),
    Keys(keys::Arguments),
    Passwd(passwd::Arguments),
    /// Say what version this is, and what it runs on.
    Version(version::Arguments),
    /// Call or be called one call after the other: the source document's pair of components.
    Roundtrip(roundtrip::Arguments),
    /// A process of a bench; started by it, of no use by hand.
    #[command(hide = true, name = crosstie_bench::WORKER_SUBCOMMAND)]
    BenchWorker {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// The exit code of what could not do its work at all.
const CANNOT_RUN: u8 = 2;

/// The exit code for an error: 1 if the node or its peer refuses.
fn exit_code(error: &anyhow::Error) -> ExitCode {
    let is_refusal = error.is::<NotPrinted>() || error.is::<Refused>() || error.is::<StartError>();
    ExitCode::from(if is_refusal { 1 } else { CANNOT_RUN })
}

/// An error and its causes in one line, without those that the line has told already.
fn chain(e: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in e.chain().map(ToString::to_string) {
        if !line.ends_with(&cause) {
            let separator = if line.is_empty() { "" } else { ": " };
            line = [&line, separator, &cause].concat();
        }
    }
    line
}

/// Runs what the client library does on this thread.
fn wait_for(outcome: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(outcome)
}

/// Crossbar.io's words for which of its programs is meant, before the command itself.
const PERSONALITIES: [&str; 2] = ["standalone", "edge"];

/// The command line as it is meant: `crosstie edge start` is `crosstie start`.
fn command_line(arguments: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let is_personality = |argument: &OsString| PERSONALITIES.iter().any(|word| argument == word);
    arguments
        .enumerate()
        .filter(move |(index, argument)| *index != 1 || !is_personality(argument))
        .map(|(_, argument)| argument)
}

fn main() -> ExitCode {
    if let Some(exit_code) = exec_child::run() {
        return exit_code;
    }
    let command = groups::grouped(Arguments::command());
    let matches = command.get_matches_from(command_line(std::env::args_os()));
    // The matches are those of the derived command, so that they can be read as its arguments.
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let outcome = match arguments.command {
        Command::Start(arguments) => start::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Call(arguments) => wait_for(call::run(arguments)),
        Command::Register(arguments) => wait_for(register::run(arguments)),
        Command::Publish(arguments) => wait_for(publish::run(arguments)),
        Command::Subscribe(arguments) => wait_for(subscribe::run(arguments)),
        Command::Bench(bench) => bench::run(bench),
        Command::Oslo(oslo) => oslo::run(oslo),
        Command::Report(arguments) => report::run(arguments),
        Command::Analyze(arguments) => analyze::run(arguments),
        Command::Testee(arguments) => testee::run(arguments),
        Command::Conformance(arguments) => conformance::run(arguments),
        Command::Link(arguments) => link::run(arguments),
        Command::Init(arguments) => init::run(arguments),
        Command::Convert(arguments) => convert::run(arguments),
        Command::Stop(arguments) => stop::run(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Queues(arguments) => queues::queues(arguments),
        Command::Exchanges(arguments) => queues::exchanges(arguments),
        Command::Bindings(arguments) => queues::bindings(&arguments),
        Command::Connections(arguments) => queues::connections(arguments),
        Command::Amqp(arguments) => amqp::run(arguments),
        Command::Backup(arguments) => backup::backup(arguments),
        Command::Sessions(arguments) => queues::sessions::run(arguments),
        Command::Cluster(command) => cluster::run(command),
        Command::Keys(arguments) => keys::run(arguments),
        Command::Passwd(arguments) => passwd::run(arguments),
        Command::Roundtrip(arguments) => roundtrip::run(arguments),
        Command::Version(arguments) => version::run(arguments),
        Command::BenchWorker { arguments } => {
            return crosstie_bench::worker(&arguments);
        }
    };
    // The log before the error that ends it; and where standard error takes no more, not even that.
    let is_heard = logging::finish();
    outcome.unwrap_or_else(|e| {
        if is_heard {
            complain!("crosstie: {}", chain(&e));
        }
        exit_code(&e)
    })
}
