//! `crosstie oslo rpc-server`: sink, echo, sleep and fail, for any caller.

use std::process::ExitCode;

use crosstie_oslo::{RpcServer, Stop, TestEndpoint, python_repr};

use super::{Place, or_none};
use crate::signals::end_in_good_order;

/// Serve the methods sink, echo, sleep (timeout, reply) and fail.
///
/// The output is that of the original Python program. It stops in good order at a signal. If the broker is lost, it
/// reports that and reconnects, at once and then after delays that double, up to 30 s, as oslo.messaging does.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of this server among the topic's servers.
    name: String,
    #[command(flatten)]
    place: Place,
    /// Print nothing.
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { name, place, quiet } = arguments;
    let stop = Stop::default();
    let heard = stop.clone();
    end_in_good_order(move |_| heard.wish())?;
    let options = place.connection_options(format!("crosstie oslo rpc-server {name}"));
    let complain = |text: &str| complain!("crosstie: {text}");
    let server = RpcServer::open(
        &place.url,
        place.target(Some(name.clone()), false),
        &options,
        complain,
    )?;
    if !quiet {
        let (exchange, topic) = (&place.exchange, &place.topic);
        let namespace = or_none(place.namespace.as_deref());
        say!(
            "Running server, name={name} exchange={exchange} topic={topic} namespace={namespace}"
        )?;
    }
    let endpoint = TestEndpoint {
        say: |method: &str, context: &serde_json::Value, args: &serde_json::Value| {
            if !quiet {
                let (context, args) = (python_repr(context), python_repr(args));
                // Callers are served also after the reader of the output has closed.
                let _ = say!("{name}::TestEndpoint{method}( ctxt={context} arg={args} ) called!!!");
            }
        },
    };
    server.run(&endpoint, &stop)?;
    if !quiet {
        say!("Stopping..")?;
    }
    Ok(ExitCode::SUCCESS)
}
