//! The command line of `crosstie`: a node, its management, and clients. Its instruments are another program.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use crosstie_terminal::{chain, logging, output, signals, wait_for};

#[macro_use(complain, say)]
extern crate crosstie_terminal;

mod amqp;
mod awaiting;
mod backup;
mod behind_proxy;
mod call;
mod check;
mod cluster;
mod completions;
mod context;
mod convert;
mod drain;
mod embedded;
mod exec_child;
mod exit_code;
mod explain;
mod groups;
mod init;
mod instruments;
mod judgement;
mod keys;
mod list;
mod log_level;
mod management;
mod nats;
mod passwd;
mod publish;
mod pull;
mod queues;
mod rabbitmqadmin;
mod rabbitmqctl;
mod refused;
mod register;
mod release;
mod reload;
mod replicated_log;
mod service;
mod start;
mod status;
mod stop;
mod store;
mod subscribe;
mod tail;
mod trace;
mod upgrade;
mod version;
mod wamp_arguments;

use self::exit_code::exit_code;

/// Route WAMP messages, broker AMQP 0-9-1, and measure both.
#[derive(Parser)]
#[command(name = "crosstie", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a node with its embedded default, or with its directory's configuration.
    Start(start::StartArguments),
    /// Check a configuration file without starting anything.
    Check(check::CheckArguments),
    Call(call::CallArguments),
    Register(register::RegisterArguments),
    Publish(publish::PublishArguments),
    Subscribe(subscribe::SubscribeArguments),
    /// Create a node directory from a template.
    Init(init::Arguments),
    /// Convert a configuration file from JSON to YAML, or back.
    Convert(convert::Arguments),
    /// Stop the node of a node directory.
    Stop(stop::Arguments),
    Reload(reload::Arguments),
    Drain(drain::DrainArguments),
    Undrain(drain::UndrainArguments),
    Upgrade(upgrade::Arguments),
    LogLevel(log_level::Arguments),
    Tail(tail::Arguments),
    /// Show whether the node of a node directory runs.
    Status(status::Arguments),
    Queues(queues::QueuesArguments),
    Exchanges(queues::ExchangesArguments),
    Bindings(queues::BindingsArguments),
    Connections(queues::ConnectionsArguments),
    Backup(backup::BackupArguments),
    Restore(store::RestoreArguments),
    Store(store::StoreArguments),
    Amqp(amqp::AmqpArguments),
    Channels(queues::ChannelsArguments),
    Consumers(queues::ConsumersArguments),
    Sessions(queues::sessions::SessionsArguments),
    Registrations(queues::sessions::RegistrationsArguments),
    #[command(visible_alias = "topics")]
    Subscriptions(queues::sessions::SubscriptionsArguments),
    Kill(queues::kill::KillArguments),
    Trace(trace::Arguments),
    Top(queues::top::TopArguments),
    Context(context::Arguments),
    WaitFor(awaiting::Arguments),
    /// Set up and watch several nodes of the same realms, or try a demo.
    #[command(subcommand)]
    Cluster(cluster::Cluster),
    Keys(keys::Arguments),
    Passwd(passwd::Arguments),
    #[command(subcommand)]
    Service(service::Service),
    Completions(completions::Arguments),
    #[command(hide = true)]
    Complete(completions::CompleteArguments),
    /// Print the version and the platform.
    Version(version::Arguments),
}

/// The grammar of the command line.
fn command() -> clap::Command {
    groups::grouped(instruments::listed(Arguments::command()))
}

/// Crossbar.io's words for one of its programs, before the command itself.
const PERSONALITIES: [&str; 2] = ["standalone", "edge"];

/// The normalized command line: `crosstie edge start` is `crosstie start`.
fn command_line(arguments: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let is_personality = |argument: &OsString| PERSONALITIES.iter().any(|word| argument == word);
    arguments
        .enumerate()
        .filter(move |(index, argument)| *index != 1 || !is_personality(argument))
        .map(|(_, argument)| argument)
}

/// The main function of the program `crosstie`.
pub fn main() -> ExitCode {
    if let Some(exit_code) = exec_child::run() {
        return exit_code;
    }
    let given: Vec<OsString> = command_line(std::env::args_os()).collect();
    if let Some((program, words)) = rabbitmqctl::meant(&given) {
        return rabbitmqctl::run(program, &given[words..]);
    }
    let is_admin = |name: &str| (name == rabbitmqadmin::NAME).then_some(());
    if let Some(((), words)) = rabbitmqctl::meant_of(&given, is_admin) {
        return rabbitmqadmin::run(&given[words..]);
    }
    if instruments::are_meant(&given) {
        return crosstie_terminal::end(instruments::run(&given), exit_code);
    }
    let matches = command().get_matches_from(given);
    // The matches are those of the derived command, so that they can be read as its arguments.
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let outcome = match arguments.command {
        Command::Start(arguments) => start::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Call(arguments) => wait_for(call::run(arguments)),
        Command::Register(arguments) => wait_for(register::run(arguments)),
        Command::Publish(arguments) => wait_for(publish::run(arguments)),
        Command::Subscribe(arguments) => wait_for(subscribe::run(arguments)),
        Command::Init(arguments) => init::run(arguments),
        Command::Convert(arguments) => convert::run(arguments),
        Command::Stop(arguments) => stop::run(arguments),
        Command::Reload(arguments) => reload::run(arguments),
        Command::Drain(arguments) => drain::drain(arguments),
        Command::Undrain(arguments) => drain::undrain(arguments),
        Command::Upgrade(arguments) => upgrade::run(arguments),
        Command::Tail(arguments) => tail::run(&arguments),
        Command::LogLevel(arguments) => log_level::run(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Queues(arguments) => queues::queues(arguments),
        Command::Exchanges(arguments) => queues::exchanges(arguments),
        Command::Bindings(arguments) => queues::bindings(&arguments),
        Command::Connections(arguments) => queues::connections(arguments),
        Command::Amqp(arguments) => amqp::run(arguments),
        Command::Backup(arguments) => backup::backup(arguments),
        Command::Restore(arguments) => store::restore(&arguments),
        Command::Store(arguments) => store::run(arguments),
        Command::Channels(arguments) => queues::channels(&arguments),
        Command::Consumers(arguments) => queues::consumers(&arguments),
        Command::Sessions(arguments) => queues::sessions::run(arguments),
        Command::Registrations(arguments) => queues::sessions::registrations(&arguments),
        Command::Subscriptions(arguments) => queues::sessions::subscriptions(&arguments),
        Command::Top(arguments) => queues::top::run(&arguments),
        Command::Kill(arguments) => queues::kill::run(arguments),
        Command::Trace(arguments) => trace::run(&arguments),
        Command::Context(arguments) => context::run(arguments),
        Command::WaitFor(arguments) => awaiting::run(arguments),
        Command::Cluster(command) => cluster::run(command),
        Command::Keys(arguments) => keys::run(arguments),
        Command::Passwd(arguments) => passwd::run(arguments),
        Command::Service(command) => service::run(command),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Complete(arguments) => completions::complete(&arguments, command()),
        Command::Version(arguments) => version::run(arguments),
    };
    crosstie_terminal::end(outcome, exit_code)
}
