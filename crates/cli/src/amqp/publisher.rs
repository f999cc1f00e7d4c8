//! Publishes messages within a window, one or each line of standard input.

use std::io::{BufRead, Read as _};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::{Context as _, bail};
use crosstie_amqp::Method;
use crosstie_amqp::method::BasicPublish;
use crosstie_amqp_client::Connection;

use crate::list::printable;
use crate::pull::confirmed::Confirmed;

/// The only channel of a connection.
pub(super) const CHANNEL: u16 = 1;

/// Maximum size of a message to publish, in bytes: that of RabbitMQ.
pub(super) const BODY_BYTES_MAX: u64 = 128 << 20;

/// Maximum number of published messages that are not confirmed.
const WINDOW: u64 = 256;

/// Maximum number of lines that are read ahead: few, as each may have 128 MiB.
const LINES_AHEAD: usize = 2;

/// A refusal is noticed within this time while standard input is silent.
const LOOK_AT_BROKER_AFTER: Duration = Duration::from_secs(1);

/// Publishes within a window of messages that are not confirmed.
pub(super) struct Publisher<'a> {
    connection: Connection,
    method: BasicPublish<'a>,
    properties: Vec<u8>,
    confirmed: Confirmed,
    refused: Option<String>,
}

impl<'a> Publisher<'a> {
    pub(super) fn new(
        connection: Connection,
        method: BasicPublish<'a>,
        properties: Vec<u8>,
    ) -> Self {
        Self {
            connection,
            method,
            properties,
            confirmed: Confirmed::default(),
            refused: None,
        }
    }

    pub(super) fn publish(&mut self, body: &[u8]) -> anyhow::Result<()> {
        if body.len() as u64 > BODY_BYTES_MAX {
            bail!("the body has more than {BODY_BYTES_MAX} bytes, which brokers refuse");
        }
        while self.confirmed.outstanding() >= WINDOW && self.refused.is_none() {
            self.wait(None)?;
        }
        if self.refused.is_none() {
            let properties = &self.properties;
            self.connection
                .publish(CHANNEL, &self.method, properties, body);
            self.connection.flush()?;
            self.confirmed.publish();
        }
        Ok(())
    }

    /// Publishes each line of standard input until the first refusal. Another thread reads them, so that this one keeps
    /// the connection alive while standard input is silent.
    pub(super) fn publish_lines(&mut self) -> anyhow::Result<()> {
        let (sender, lines) = sync_channel(LINES_AHEAD);
        std::thread::spawn(move || send_lines(&mut std::io::stdin().lock(), &sender));
        while self.refused.is_none() {
            match lines.recv_timeout(LOOK_AT_BROKER_AFTER) {
                Ok(line) => self.publish(&line.context("cannot read standard input")?)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.wait(Some(Duration::ZERO))?;
        }
        Ok(())
    }

    /// Waits for a confirm or a refusal.
    fn wait(&mut self, timeout: Option<Duration>) -> anyhow::Result<()> {
        let Some(event) = self.connection.next_event(timeout)? else {
            return Ok(());
        };
        match event.method {
            Method::BasicAck(ack) => {
                self.confirmed.confirm(ack.delivery_tag, ack.multiple);
            }
            Method::BasicNack(_) => {
                self.refused = Some("the broker refused the message".to_owned());
            }
            Method::BasicReturn(returned) => {
                self.refused = Some(format!(
                    "the broker returned the message: {} {}: no queue is bound with this routing key",
                    returned.reply_code,
                    printable(returned.reply_text)
                ));
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> anyhow::Result<ExitCode> {
        while self.confirmed.outstanding() > 0 && self.refused.is_none() {
            self.wait(None)?;
        }
        let _ = self.connection.close();
        match self.refused {
            Some(why) => {
                complain!("crosstie: {why}");
                Ok(ExitCode::FAILURE)
            }
            None => {
                let published = self.confirmed.published();
                let plural = if published == 1 { "" } else { "s" };
                say!("Published {published} message{plural}, confirmed")?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

/// Sends each line of `input`, until its end or an error.
fn send_lines(input: &mut impl BufRead, lines: &SyncSender<std::io::Result<Vec<u8>>>) {
    loop {
        let mut line = Vec::new();
        let read = input
            .by_ref()
            .take(BODY_BYTES_MAX + 1)
            .read_until(b'\n', &mut line);
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        let (next, is_last) = match read {
            Ok(0) => return,
            Ok(_) => (Ok(line), false),
            Err(error) => (Err(error), true),
        };
        // The publisher ends at a refusal.
        if lines.send(next).is_err() || is_last {
            return;
        }
    }
}
