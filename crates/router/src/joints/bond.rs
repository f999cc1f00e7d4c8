//! The AMQP end of a joint: one channel of a connection of the router's own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crosstie_amqp::Arguments;
use crosstie_amqp::frame;
use crosstie_amqp::method::{
    BasicAck, BasicPublish, BasicReject, ChannelOpen, ConnectionClose, ConnectionCloseOk,
};
use crosstie_broker::resident::{FRAME_BYTES_MAX, Residence, let_in};
use crosstie_transport::{Connection, pump, uncork};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::deliveries::{Frames, Incoming};
use crate::registry::Registry;

/// The only channel.
pub(super) const CHANNEL: u16 = 1;

/// A channel in a vhost.
pub(super) struct Bond {
    connection: Arc<Connection>,
    state: Mutex<State>,
    /// Why it has ended, once it has.
    ended: watch::Sender<Option<String>>,
}

#[derive(Default)]
struct State {
    is_over: bool,
    /// Tasks that wait for answers, in the order of their requests.
    asked: VecDeque<oneshot::Sender<()>>,
    /// Number of publications since confirms were enabled; `None` before.
    published: Option<u64>,
    confirms: BTreeMap<u64, oneshot::Sender<bool>>,
}

/// A message to be published.
#[derive(Clone, Copy, Debug)]
pub(super) struct Publication<'p> {
    pub(super) exchange: &'p str,
    pub(super) routing_key: &'p str,
    /// Returned if no queue matches.
    pub(super) is_mandatory: bool,
    pub(super) properties: &'p [u8],
    pub(super) body: &'p [u8],
}

/// Why an action failed, as text.
pub(super) type Unbound = String;

impl Bond {
    /// Enters a vhost, and opens the channel. `handle` gets the input, on the thread of `runtime`.
    pub(super) async fn open(
        router: &Arc<Registry>,
        residence: Residence<'_>,
        body_bytes_max: usize,
        runtime: &Handle,
        handle: impl FnMut(Incoming) + Send + 'static,
    ) -> Result<Arc<Self>, Unbound> {
        let broker = router.amqp().ok_or("there is no AMQP in this worker")?;
        let connection = let_in(&broker, residence, runtime)?;
        let bond = Arc::new(Self {
            connection,
            state: Mutex::default(),
            ended: watch::Sender::new(None),
        });
        let mut frames = Frames::new(Arc::clone(&bond), body_bytes_max, handle);
        let reading = Arc::clone(&bond);
        runtime.spawn(async move {
            pump(&reading.connection, &mut frames).await;
            drop(frames);
            reading.connection.close();
        });
        bond.ask(&ChannelOpen { out_of_band: "" }).await?;
        Ok(bond)
    }

    /// Sends a method, and waits for its answer.
    pub(super) async fn ask(&self, method: &impl Arguments) -> Result<(), Unbound> {
        let (sender, answered) = oneshot::channel();
        {
            let mut state = self.state.lock();
            if state.is_over {
                return Err(self.why());
            }
            state.asked.push_back(sender);
            self.append(|out| frame::write_method(CHANNEL, method, out))?;
        }
        uncork();
        answered.await.map_err(|_| self.why())
    }

    /// Enables confirms for later publications. Called after `confirm.select-ok`.
    pub(super) fn note_confirming(&self) {
        self.state.lock().published = Some(0);
    }

    /// Publishes without waiting for the outcome.
    pub(super) fn publish(&self, publication: Publication<'_>) -> Result<(), Unbound> {
        let published = self.write(publication, None);
        uncork();
        published
    }

    /// Publishes, and waits for the confirm. Returns whether the broker accepted the message.
    pub(super) async fn publish_confirmed(
        &self,
        publication: Publication<'_>,
    ) -> Result<bool, Unbound> {
        let (sender, confirmed) = oneshot::channel();
        let published = self.write(publication, Some(sender));
        uncork();
        published?;
        confirmed.await.map_err(|_| self.why())
    }

    pub(super) fn acknowledge(&self, delivery_tag: u64) {
        let acknowledged = BasicAck::one(delivery_tag);
        self.say(&acknowledged);
    }

    /// Rejects a delivery: to its queue, or as a dead letter.
    pub(super) fn reject(&self, delivery_tag: u64, requeue: bool) {
        self.say(&BasicReject {
            delivery_tag,
            requeue,
        });
    }

    /// Waits until the output queue has room for publications.
    pub(super) async fn room(&self) {
        if self.connection.queued_bytes() > QUEUED_BYTES_MAX {
            self.connection.sent().await;
        }
    }

    /// Waits for its end. Returns the reason.
    pub(super) async fn ended(&self) -> String {
        let mut ended = self.ended.subscribe();
        let why = ended.wait_for(Option::is_some).await;
        why.ok().and_then(|why| why.clone()).unwrap_or_default()
    }

    /// Closes the connection in order: earlier publications are completed.
    pub(super) fn close(&self, why: &str) {
        let close = ConnectionClose {
            reply_code: 200,
            reply_text: "",
            class_id: 0,
            method_id: 0,
        };
        let _ = self.append(|out| frame::write_method(0, &close, out));
        self.end(why);
        uncork();
    }

    /// Marks it as ended, with the reason.
    pub(super) fn end(&self, why: &str) {
        let mut state = self.state.lock();
        if state.is_over {
            return;
        }
        state.is_over = true;
        self.ended.send_replace(Some(why.to_owned()));
        // Waiting tasks find that no answer will come.
        state.asked.clear();
        state.confirms.clear();
    }

    /// The broker closes the connection.
    pub(super) fn closed(&self, why: &str) {
        self.end(why);
        let _ = self.append(|out| frame::write_method(0, &ConnectionCloseOk {}, out));
    }

    /// The broker has answered the oldest request.
    pub(super) fn answered(&self) {
        let asked = self.state.lock().asked.pop_front();
        if let Some(asked) = asked {
            // The requester may be gone.
            let _ = asked.send(());
        }
    }

    /// The broker has accepted or rejected the publication of that number, and all earlier ones if `multiple`.
    pub(super) fn confirmed(&self, number: u64, multiple: bool, is_taken: bool) {
        let mut state = self.state.lock();
        let confirmed = match multiple {
            true => {
                let later = state.confirms.split_off(&(number + 1));
                std::mem::replace(&mut state.confirms, later)
            }
            false => state.confirms.remove_entry(&number).into_iter().collect(),
        };
        drop(state);
        for waiting in confirmed.into_values() {
            let _ = waiting.send(is_taken);
        }
    }

    /// Charges bytes to this connection, or releases them.
    pub(super) fn hold(&self, delta: isize) {
        self.connection.hold(delta);
    }

    fn say(&self, method: &impl Arguments) {
        // If the bond has ended, its waiters learn that elsewhere.
        let _ = self.append(|out| frame::write_method(CHANNEL, method, out));
        uncork();
    }

    fn write(
        &self,
        publication: Publication<'_>,
        confirm: Option<oneshot::Sender<bool>>,
    ) -> Result<(), Unbound> {
        let mut state = self.state.lock();
        if state.is_over {
            return Err(self.why());
        }
        let Publication {
            exchange,
            routing_key,
            is_mandatory,
            properties,
            body,
        } = publication;
        let method = BasicPublish {
            exchange,
            routing_key,
            mandatory: is_mandatory,
            immediate: false,
        };
        self.append(|out| {
            frame::write_method(CHANNEL, &method, out);
            frame::write_content(CHANNEL, properties, body, FRAME_BYTES_MAX, out);
        })?;
        if let Some(number) = &mut state.published {
            *number += 1;
            let number = *number;
            if let Some(confirm) = confirm {
                state.confirms.insert(number, confirm);
            }
        }
        Ok(())
    }

    fn append(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Unbound> {
        let appended = self.connection.append(|out| {
            write(out);
            Ok::<(), ()>(())
        });
        appended.map_err(|refused| match refused {
            crosstie_transport::Refused::Full => "the broker takes no messages".to_owned(),
            _ => self.why(),
        })
    }

    fn why(&self) -> String {
        let why = self.ended.borrow().clone();
        why.unwrap_or_else(|| "the connection to the broker has ended".to_owned())
    }
}

impl Drop for Bond {
    fn drop(&mut self) {
        self.connection.close();
    }
}

/// Maximum bytes that wait for a broker that blocks publishers, before a joint takes no more events from its realm.
const QUEUED_BYTES_MAX: usize = 256 * 1024;
