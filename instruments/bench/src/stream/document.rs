//! The figures of the source document, "Stream Testee" (Crossbar.io 2015), measured with netperf.

use super::case::{Case, Mode, Test};
use crate::subject::Socket;

/// The hardware of the document's figures.
pub(crate) const HARDWARE: &str = "FreeBSD 10.1, Xeon E3-1240 v3 at 3.4 GHz";

/// The document's two networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    Loopback,
    /// Two machines over 10 gigabit Ethernet.
    TenGigabit,
}

impl Network {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::TenGigabit => "10GbE",
        }
    }
}

/// One of its figures: transactions or 10^6 bits per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    pub server: &'static str,
    pub per_s: f64,
}

/// Its figures for a case, the testee's first. It measured TCP alone, and CRR with netserver alone.
pub(crate) fn figures(case: &Case, network: Network) -> Vec<Figure> {
    const PYPY: &str = "testee, PyPy";
    const CPYTHON: &str = "testee, CPython";
    const NETSERVER: &str = "netserver";
    if case.socket != Socket::Tcp {
        return Vec::new();
    }
    let figures: &[(&str, f64)] = match (case.test, case.mode, network) {
        (Test::RequestResponse, _, Network::Loopback) => &[
            (PYPY, 63_572.31),
            (CPYTHON, 25_266.67),
            (NETSERVER, 114_822.69),
        ],
        (Test::RequestResponse, _, Network::TenGigabit) => &[
            (PYPY, 20_524.63),
            (CPYTHON, 13_342.51),
            (NETSERVER, 26_851.95),
        ],
        // Its testee echoed, and its client did not read the echoes.
        (Test::Stream, Mode::Echo, Network::Loopback) => &[(PYPY, 11_420.84), (CPYTHON, 10_335.18)],
        (Test::Stream, Mode::Echo, Network::TenGigabit) => &[(PYPY, 1_202.82), (CPYTHON, 1_368.46)],
        (Test::Stream, _, Network::Loopback) => &[(NETSERVER, 46_675.42)],
        (Test::Stream, _, Network::TenGigabit) => &[(NETSERVER, 9_918.16)],
        (Test::ConnectRequestResponse, _, Network::Loopback) => &[(NETSERVER, 45_586.91)],
        (Test::ConnectRequestResponse, _, Network::TenGigabit) => &[(NETSERVER, 13_206.10)],
        (Test::Maerts, ..) => &[],
    };
    let figure = |&(server, per_s)| Figure { server, per_s };
    figures.iter().map(figure).collect()
}
