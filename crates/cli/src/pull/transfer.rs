//! Moves the messages of one queue: delivered there, published here, and acknowledged there once they are confirmed
//! here.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use crosstie_amqp::Method;
use crosstie_amqp::method::{BasicAck, BasicConsume, BasicPublish, BasicQos, ConfirmSelect};

use super::confirmed::Confirmed;
use super::side::{CHANNEL, Side};

/// A wait for more when nothing is on its way.
const LOOK: Duration = Duration::from_millis(100);
/// A wait for confirms while more may be delivered.
const GLANCE: Duration = Duration::from_millis(5);
/// Without a delivery for so long, ready messages are another consumer's.
const PATIENCE: Duration = Duration::from_secs(30);
/// A wait for the confirms that are left after a refusal.
const LAST_CONFIRMS: Duration = Duration::from_secs(1);
/// Messages that are published before the next look at the confirms.
const PUBLISHED_AT_ONCE: u32 = 64;

pub(super) struct Transfer<'a> {
    pub(super) queue: &'a str,
    pub(super) source: &'a mut Side,
    pub(super) target: &'a mut Side,
    /// Messages on their way at once.
    pub(super) window: u16,
}

impl Transfer<'_> {
    /// Moves messages until the source has none ready. Returns their number. `progress` gets it from time to time.
    pub(super) fn run(&mut self, progress: &mut dyn FnMut(u64)) -> anyhow::Result<u64> {
        self.begin()?;
        let mut confirmed = Confirmed::default();
        let mut came_at = Instant::now();
        loop {
            let came = self.publish_delivered(&mut confirmed)?;
            if came {
                came_at = Instant::now();
            }
            self.take_confirms(&mut confirmed, came)?;
            progress(confirmed.published() - confirmed.outstanding());
            if came || confirmed.outstanding() > 0 {
                continue;
            }
            let ready = match self.source.depth(self.queue)? {
                None => bail!("it was deleted at the source meanwhile"),
                Some(depth) => depth.messages,
            };
            // Deliveries may have come with the answer.
            if self.publish_delivered(&mut confirmed)? {
                continue;
            }
            match ready {
                0 => return Ok(confirmed.published()),
                _ if came_at.elapsed() < PATIENCE => {}
                ready => bail!(
                    "the source has {ready} ready messages and delivers none: is another consumer its single active one?"
                ),
            }
        }
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        self.target.renew()?;
        let confirms = ConfirmSelect::default();
        self.target.connection.call(CHANNEL, &confirms)?;
        self.source.renew()?;
        let qos = BasicQos::of_each(self.window);
        self.source.connection.call(CHANNEL, &qos)?;
        let consume = BasicConsume {
            queue: self.queue,
            ..BasicConsume::default()
        };
        let consuming = self.source.connection.call(CHANNEL, &consume);
        consuming.context("consuming at the source")?;
        Ok(())
    }

    /// Publishes what has been delivered, some at once. Returns whether there was any.
    fn publish_delivered(&mut self, confirmed: &mut Confirmed) -> anyhow::Result<bool> {
        let wait = match confirmed.outstanding() {
            0 => LOOK,
            _ => Duration::ZERO,
        };
        let mut wait = Some(wait);
        let mut came = 0;
        while came < PUBLISHED_AT_ONCE && confirmed.outstanding() < u64::from(self.window) {
            let event = self.source.connection.next_event(wait)?;
            wait = Some(Duration::ZERO);
            let Some(event) = event else {
                break;
            };
            match (event.method, event.content) {
                (Method::BasicDeliver(deliver), Some(content)) => {
                    let number = confirmed.publish();
                    if deliver.delivery_tag != number {
                        bail!(
                            "expected delivery {number} of the source, found {}",
                            deliver.delivery_tag
                        );
                    }
                    let publish = BasicPublish {
                        mandatory: true,
                        ..BasicPublish::to("", self.queue)
                    };
                    let properties = content.properties.bytes();
                    let target = &mut self.target.connection;
                    target.publish(CHANNEL, &publish, properties, &content.body);
                    came += 1;
                }
                (Method::BasicCancel(_), _) => bail!("it was deleted at the source meanwhile"),
                _ => {}
            }
        }
        self.target.connection.flush()?;
        Ok(came > 0)
    }

    /// Takes confirms, and acknowledges at the source what they allow.
    fn take_confirms(&mut self, confirmed: &mut Confirmed, came: bool) -> anyhow::Result<()> {
        let is_full = confirmed.outstanding() >= u64::from(self.window);
        let mut wait = match (confirmed.outstanding(), is_full, came) {
            (0, ..) => return Ok(()),
            (_, true, _) => LOOK,
            (_, _, true) => Duration::ZERO,
            (_, _, false) => GLANCE,
        };
        let mut acknowledged = None;
        let mut refused = None;
        while let Some(event) = self.target.connection.next_event(Some(wait))? {
            wait = Duration::ZERO;
            match event.method {
                Method::BasicAck(ack) => {
                    let all = confirmed.confirm(ack.delivery_tag, ack.multiple);
                    acknowledged = all.or(acknowledged);
                }
                Method::BasicNack(_) => refused = Some("a message was refused here".to_owned()),
                Method::BasicReturn(returned) => {
                    refused = Some(format!(
                        "a message was returned here: {}",
                        returned.reply_text
                    ));
                }
                _ => {}
            }
            // Refusals come at once, confirms of stored messages after their commit.
            if refused.is_some() {
                wait = LAST_CONFIRMS;
            }
        }
        if let Some(delivery_tag) = acknowledged {
            let ack = BasicAck::up_to(delivery_tag);
            self.source.connection.send(CHANNEL, &ack);
            self.source.connection.flush()?;
        }
        if let Some(why) = refused {
            bail!("{why}");
        }
        // The source must hear from this side, however long the target waits.
        self.source.connection.keep_alive()?;
        Ok(())
    }
}
