//! `crosstie roundtrip`: the two ends of the document's measurement, for a node's guests.

use std::io::{self, Write};
use std::process::ExitCode;

use crosstie_bench::{CallerOptions, EndOptions, Leave, Url, callee, caller, document_line};
use crosstie_wamp::Serializer;

use crate::signals::end_in_good_order;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    end: End,
}

#[derive(clap::Subcommand)]
enum End {
    /// Register a procedure that returns its arguments.
    Callee(EndArguments),
    /// Call it, one call after the other, check each result, and print the average of each batch.
    Caller(CallerArguments),
}

#[derive(clap::Args)]
struct EndArguments {
    /// Router: rs+unix:crossbar.sock, ws://127.0.0.1:9000/, rs://…, ws+unix:…
    #[arg(long)]
    url: Url,
    #[arg(long, default_value = "realm1")]
    realm: String,
    #[arg(long, value_name = "URI")]
    procedure: String,
    /// Serializer: json, msgpack or cbor [default: msgpack over RawSocket, json over WebSocket].
    #[arg(long, value_parser = serializer)]
    serializer: Option<Serializer>,
}

#[derive(clap::Args)]
struct CallerArguments {
    #[command(flatten)]
    end: EndArguments,
    /// Text in brackets before each average.
    #[arg(long, value_name = "NAME")]
    name: String,
    /// Calls between two lines.
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Lines after which the caller leaves [default: until a signal].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batches: Option<u64>,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let leave = leave_at_a_signal()?;
    match arguments.end {
        End::Callee(end) => callee(&end.options(leave), || {
            say("Ready!");
        })?,
        End::Caller(arguments) => {
            let options = CallerOptions {
                end: arguments.end.options(leave),
                batch: arguments.batch,
                batches: arguments.batches,
            };
            let name = arguments.name;
            caller(&options, |average_ms| {
                say(&document_line(&name, average_ms))
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl EndArguments {
    fn options(self, leave: Leave) -> EndOptions {
        EndOptions {
            url: self.url,
            realm: self.realm,
            procedure: self.procedure,
            serializer: self.serializer,
            leave,
        }
    }
}

/// Prints one line; false if the reader has closed.
fn say(line: &str) -> bool {
    writeln!(io::stdout(), "{line}").is_ok()
}

/// The first signal ends the calls in order, a second one at once.
fn leave_at_a_signal() -> anyhow::Result<Leave> {
    let leave = Leave::default();
    let heard = leave.clone();
    end_in_good_order(move |_| heard.wish())?;
    Ok(leave)
}

fn serializer(name: &str) -> Result<Serializer, String> {
    Serializer::from_name(name).ok_or_else(|| "expected json, msgpack or cbor".to_owned())
}
