//! The network between clients and servers, as every bench takes it.

use crosstie_bench::NetworkOptions;
use crosstie_link::LinkOptions;

#[derive(clap::Args)]
pub(crate) struct NetworkArguments {
    /// Put a link in front of each server: a delay as in 50ms, then jitter=TIME, rate=RATE or
    /// direction=up|down|both, as in 50ms,rate=10mbit; the round trip grows by the delay.
    #[arg(long, value_name = "LINK")]
    link: Option<LinkOptions>,
    /// Run servers and clients in two network namespaces over a veth pair, as if on two machines;
    /// takes root.
    #[arg(long)]
    netns: bool,
}

impl NetworkArguments {
    pub(crate) fn options(self) -> NetworkOptions {
        NetworkOptions {
            link: self.link,
            netns: self.netns,
        }
    }
}
