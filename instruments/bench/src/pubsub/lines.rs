//! The load client's output: one line a second, in the form of the document's client.

use super::drivers::{Second, Watcher};
use crate::frame::Site;

/// The load in the load client's terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Parameters {
    pub(super) clients: usize,
    pub(super) uprate: f64,
    pub(super) payload_bytes: usize,
    pub(super) batch: u64,
    pub(super) rate_hz: f64,
}

/// Lines between two headings.
const HEADING_EVERY: u64 = 20;

/// Prints the lines of one run, if they are shown at all.
pub(super) struct Lines<'a> {
    shown: Option<Parameters>,
    site: &'a Site,
    printed: u64,
    sent: u64,
    received: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(shown: Option<Parameters>, site: &'a Site) -> Self {
        Self {
            shown,
            site,
            printed: 0,
            sent: 0,
            received: 0,
        }
    }

    /// The load client's line when it begins to publish.
    pub(super) fn connected(&self) {
        if let Some(parameters) = self.shown {
            let clients = parameters.clients;
            self.write(&format!(
                "ok, {clients} clients all connected, start publishing ..\n"
            ));
        }
    }

    fn write(&self, text: &str) {
        // A line ends where the next one begins.
        self.site.say(text.strip_suffix('\n').unwrap_or(text));
    }
}

impl Watcher for Lines<'_> {
    fn subscribed(&mut self, sessions: usize) {
        self.site
            .announce(format!("{sessions} subscribers connected"));
    }

    fn second(&mut self, second: Second) {
        let Some(parameters) = self.shown else { return };
        if self.printed.is_multiple_of(HEADING_EVERY) {
            self.write(&heading(&parameters));
        }
        self.printed += 1;
        self.sent += second.sent;
        self.received += second.since.events;
        self.write(&line(second, self.sent, self.received));
    }
}

fn heading(parameters: &Parameters) -> String {
    let Parameters {
        clients,
        uprate,
        payload_bytes,
        batch,
        rate_hz,
    } = parameters;
    format!(
        "\nParameters: {clients} clients, {uprate} uprate, {payload_bytes} payload, {batch} \
         batchsize, {rate_hz} rate\nMessages: sent_last, recv_last, sent_total, recv_total, avg. \
         rtt (ms)\n\n"
    )
}

fn line(second: Second, sent_total: u64, received_total: u64) -> String {
    let Second { sent, since } = second;
    let rtt_ms = match since.timed {
        0 => 0.0,
        timed => since.sum_ns as f64 / timed as f64 / 1e6,
    };
    let received = since.events;
    format!("{sent}, {received}, {sent_total}, {received_total}, {rtt_ms:.6}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pubsub::ledger::Since;

    #[test]
    fn lines_have_the_load_clients_form() {
        let second = Second {
            sent: 50,
            since: Since {
                events: 1_000,
                timed: 800,
                sum_ns: 1_234_567_800,
            },
        };
        assert_eq!(line(second, 150, 3_000), "50, 1000, 150, 3000, 1.543210\n");
        assert_eq!(line(Second::default(), 0, 0), "0, 0, 0, 0, 0.000000\n");
        let parameters = Parameters {
            clients: 20,
            uprate: 15.0,
            payload_bytes: 10,
            batch: 1,
            rate_hz: 0.2,
        };
        assert_eq!(
            heading(&parameters),
            "\nParameters: 20 clients, 15 uprate, 10 payload, 1 batchsize, 0.2 rate\nMessages: \
             sent_last, recv_last, sent_total, recv_total, avg. rtt (ms)\n\n"
        );
    }
}
