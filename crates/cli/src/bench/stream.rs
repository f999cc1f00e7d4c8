//! `crosstie bench stream`.

use std::process::ExitCode;

use clap::ValueEnum;
use crosstie_bench::{Address, Mode, NamedTest, Socket, StreamOptions, stream};

use super::common::{AsUsual, CommonArguments, SubjectArguments};
use super::network::NetworkArguments;
use super::stop::{ended, stop_at_a_signal};

/// Starts a testee and the floor's servers, and drivers as processes of their own.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// TCP_RR, TCP_STREAM, TCP_CRR (the default: these three), TCP_MAERTS, or the same with UDS_
    /// for a Unix socket; may be repeated.
    #[arg(short, long = "test", value_name = "TEST")]
    tests: Vec<NamedTest>,
    /// For tests that do not name theirs; may be repeated [default: tcp].
    #[arg(long = "socket", value_name = "KIND")]
    sockets: Vec<SocketKind>,
    /// What the server does: echo, discard or chargen; may be repeated for the testee [default:
    /// echo and discard; with --url echo].
    #[arg(long = "mode", value_name = "MODE")]
    modes: Vec<Mode>,
    /// Bytes of each request and of its response.
    #[arg(short, long, default_value = "1", value_parser = request_size, value_name = "BYTES")]
    request_size: usize,
    /// Bytes of each send of a throughput.
    #[arg(short = 'm', long, default_value_t = 32_768, value_name = "BYTES")]
    send_size: usize,
    #[command(flatten)]
    server: SubjectArguments<Address>,
    /// netserver: measure it too, by its own netperf, both found on PATH.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<Peer>,
    #[command(flatten)]
    network: NetworkArguments,
    #[command(flatten)]
    common: CommonArguments<AsUsual>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum SocketKind {
    Tcp,
    Unix,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Peer {
    Netserver,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let stop = stop_at_a_signal()?;
    let SubjectArguments { url, pids } = arguments.server;
    let network = arguments.network.options();
    let options = StreamOptions {
        common: arguments.common.options(pids, network, &stop)?,
        tests: arguments.tests,
        sockets: arguments.sockets.into_iter().map(Socket::from).collect(),
        modes: arguments.modes,
        request_bytes: arguments.request_size,
        send_bytes: arguments.send_size,
        url,
        netserver: arguments.peers.contains(&Peer::Netserver),
    };
    Ok(ended(&stop, stream(options)?.is_valid()))
}

impl From<SocketKind> for Socket {
    fn from(kind: SocketKind) -> Self {
        match kind {
            SocketKind::Tcp => Self::Tcp,
            SocketKind::Unix => Self::Unix,
        }
    }
}

/// netperf's `REQUEST,RESPONSE`, of which an echo can only serve equal ones.
fn request_size(text: &str) -> Result<usize, String> {
    let number = |text: &str| text.trim().parse::<usize>().map_err(|e| e.to_string());
    let Some((request, response)) = text.split_once(',') else {
        return number(text);
    };
    let (request, response) = (number(request)?, number(response)?);
    match request == response {
        true => Ok(request),
        false => Err("an echo answers as many bytes as it is sent: give one size".to_owned()),
    }
}
