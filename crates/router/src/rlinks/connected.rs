//! A connected link: one lock around its logic, and the senders of both sides.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_client::Welcome;
use crosstie_client::pipe::{Pipe, PipeHandler, PipeSender};
use crosstie_config as model;
use crosstie_realms::resident::{Room, send};
use crosstie_rlinks::{Count, End, Ended, Kind, Link, Outbox, Settings, Side};
use crosstie_routing::Identity;
use crosstie_transport::pump;
use crosstie_wamp::{Message, Value};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::local::{FromLocal, Local};
use crate::registry::Registry;
use crate::rlink_state::{AtWork, RLink};

pub(super) struct Running {
    state: Mutex<State>,
    local: Arc<Local>,
    remote: Arc<PipeSender>,
    queue_bytes_max: usize,
    /// Why it is over, once it is.
    ended: watch::Sender<Option<String>>,
}

struct State {
    link: Link,
    sides: Sides,
    is_ready: bool,
}

/// The destinations of a link's messages.
struct Sides {
    of: Arc<RLink>,
    local: Arc<Local>,
    remote: Arc<PipeSender>,
    /// The fault of a message sent here.
    wrong: Option<String>,
    warnings: Warnings,
}

/// Warnings, limited in their rate.
struct Warnings {
    since: Instant,
    count: u32,
    left_out: u32,
}

const WARNINGS_MAX: u32 = 10;
const WARNINGS_PER: Duration = Duration::from_secs(60);

impl Running {
    /// Joins the realm, and queries the contents of both sides.
    pub(super) fn begin(
        link: &Arc<RLink>,
        state: &Arc<Registry>,
        room: Arc<dyn Room>,
        pipe: &Pipe,
        welcome: &Welcome,
    ) -> Result<Arc<Self>, String> {
        let model = &link.model;
        let remote = pipe.sender();
        let there = place(welcome);
        let here = format!(
            "{}/{}/{}/{}",
            state.realms.node,
            state.id(),
            std::process::id(),
            link.realm
        );
        if there == here {
            return Err("it leads to the realm that it begins in".to_owned());
        }
        let authid = model.authid.as_deref().unwrap_or(&model.id);
        let identity = Identity::new(authid, model.role.as_str(), "internal", "rlink");
        let serializer = remote.serializer();
        let local = Local::join(room, &state.bounds.limits, identity, serializer)?;
        let local = Arc::new(local);
        let local_end = End {
            session: local.session,
            authid: authid.to_owned(),
            authrole: model.role.clone(),
            realm: here,
            serializer,
        };
        let remote_end = End {
            session: welcome.session,
            authid: welcome.authid.clone().unwrap_or_default(),
            authrole: welcome.authrole.clone().unwrap_or_default(),
            realm: there,
            serializer,
        };
        let running = Arc::new(Self {
            state: Mutex::new(State {
                link: Link::new(settings(model), [local_end, remote_end]),
                sides: Sides {
                    of: Arc::clone(link),
                    local: Arc::clone(&local),
                    remote: Arc::clone(&remote),
                    wrong: None,
                    warnings: Warnings::new(),
                },
                is_ready: false,
            }),
            local,
            remote,
            queue_bytes_max: model.queue_bytes_max,
            ended: watch::Sender::new(None),
        });
        let reader = Arc::clone(&running.local.reader);
        let mut from_local = FromLocal::new(Arc::clone(&running), serializer);
        tokio::spawn(async move { pump(&reader, &mut from_local).await });
        running.act(|link, sides| link.start(sides))?;
        send();
        Ok(running)
    }

    /// Passes a message to the link's logic. An error ends the link.
    pub(super) fn handle(&self, side: Side, message: Message<'_>) -> Result<(), String> {
        self.act(|link, sides| link.handle(side, message, sides))
    }

    fn act(
        &self,
        act: impl FnOnce(&mut Link, &mut Sides) -> Result<(), Ended>,
    ) -> Result<(), String> {
        let mut state = self.state.lock();
        let State {
            link,
            sides,
            is_ready,
        } = &mut *state;
        if self.ended.borrow().is_some() {
            return Err("the link is over".to_owned());
        }
        let acted = act(link, sides).map_err(|ended| ended.0);
        let wrong = sides.wrong.take().map_or(Ok(()), Err);
        let acted = acted.and(wrong);
        if acted.is_ok() && !*is_ready && link.is_ready() {
            *is_ready = true;
            let held = |kind| {
                let [here, there] = Side::BOTH.map(|side| link.held(side, kind));
                format!("{there} from here, {here} from there")
            };
            tracing::info!(
                "Link '{}' is there: topics {}; procedures {}",
                sides.of.model.id,
                held(Kind::Subscription),
                held(Kind::Registration)
            );
        }
        drop(state);
        acted.inspect_err(|why| self.end(why))
    }

    /// Pauses reading from its own realm while too many bytes wait for the other router.
    pub(super) fn pause(&self) {
        let reader = &self.local.reader;
        let is_full = || self.remote.outgoing_bytes() > self.queue_bytes_max;
        match (is_full(), reader.is_reading_paused()) {
            (true, false) => {
                reader.pause_reading();
                // They may have been sent meanwhile, by a thread that did not find the reader paused.
                if !is_full() {
                    reader.resume_reading();
                }
            }
            (false, true) => reader.resume_reading(),
            _ => {}
        }
    }

    /// Ends it: both sessions leave.
    pub(super) fn end(&self, why: &str) {
        let is_first = self.ended.send_if_modified(|ended| {
            let is_first = ended.is_none();
            ended.get_or_insert_with(|| why.to_owned());
            is_first
        });
        if !is_first {
            return;
        }
        self.local.leave();
        // A router that has closed its connection does not read this.
        let _ = self.remote.say(&Message::Goodbye {
            details: vec![("message".to_owned(), Value::from(why))],
            reason: "wamp.close.close_realm".into(),
        });
    }

    /// Waits until it is over. Returns the reason.
    pub(super) async fn ended(&self) -> String {
        let mut ended = self.ended.subscribe();
        match ended.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            // The sender is in `self`.
            Err(_) => String::new(),
        }
    }

    pub(super) fn why(&self) -> Option<String> {
        self.ended.borrow().clone()
    }
}

impl AtWork for Running {
    fn held(&self, side: Side, kind: Kind) -> usize {
        self.state.lock().link.held(side, kind)
    }

    fn calls(&self, from: Side) -> usize {
        self.state.lock().link.calls(from)
    }

    fn queued_bytes(&self) -> usize {
        self.remote.outgoing_bytes()
    }

    fn end(&self, why: &str) {
        Self::end(self, why);
    }
}

/// Receives the other router's messages.
pub(super) struct FromRemote(pub(super) Arc<Running>);

impl PipeHandler for FromRemote {
    fn handle(&mut self, message: Message<'_>) -> Result<(), String> {
        self.0.handle(Side::Remote, message)
    }

    fn pause(&mut self, _outgoing_bytes: usize) {
        // Flushes messages that were sent in its own realm meanwhile.
        send();
        self.0.pause();
    }
}

impl Outbox for Sides {
    fn say(&mut self, side: Side, message: &Message<'_>) -> Result<(), String> {
        match side {
            Side::Remote => self.remote.say(message).map_err(|e| e.to_string()),
            Side::Local => {
                if let Err(why) = self.local.say(message) {
                    self.wrong.get_or_insert(why);
                }
                Ok(())
            }
        }
    }

    fn count(&mut self, what: Count) {
        self.of.counts.count(what);
    }

    fn warn(&mut self, text: &str) {
        self.warnings.warn(&self.of.model.id, text);
    }
}

impl Warnings {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            count: 0,
            left_out: 0,
        }
    }

    fn warn(&mut self, id: &str, text: &str) {
        if self.since.elapsed() > WARNINGS_PER {
            if self.left_out > 0 {
                tracing::warn!("Link '{id}': {} more such lines left out", self.left_out);
            }
            *self = Self::new();
        }
        self.count += 1;
        match self.count <= WARNINGS_MAX {
            true => tracing::warn!("Link '{id}': {text}"),
            false => self.left_out += 1,
        }
    }
}

fn settings(model: &model::RLink) -> Settings {
    Settings {
        mirrored: [
            [model.forward_local_events, model.forward_local_invocations],
            [
                model.forward_remote_events,
                model.forward_remote_invocations,
            ],
        ],
        exclude_authid: model.exclude_authid.clone(),
        mirrors_max: model.mirrors_max,
        calls_max: model.calls_max,
        forward_for_max: model.forward_for_max,
    }
}

/// The other realm's name for all links: its node, worker, process and realm, from its WELCOME.
fn place(welcome: &Welcome) -> String {
    let said = |name: &str| {
        let found = welcome.authextra.iter().find(|(key, _)| key == name);
        match found.map(|(_, value)| value) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Integer(number)) => Some(number.to_string()),
            _ => None,
        }
    };
    let [node, worker, process] = ["x_cb_node", "x_cb_worker", "x_cb_pid"].map(said);
    match (node, worker, process) {
        (Some(node), Some(worker), Some(process)) => {
            format!("{node}/{worker}/{process}/{}", welcome.realm)
        }
        // Only this link uses that name, so that returning messages are not recognized.
        _ => format!("session {}", welcome.session),
    }
}
