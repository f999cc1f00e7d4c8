//! The interpreter of the scripts: one case, line by line.

mod input;
mod output;
mod policy;
mod tally;

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_amqp::Method;
use crosstie_auth::Permissions;
use crosstie_queues::policy::{Applied, Policies, PolicyKind};
use crosstie_queues::{
    ChannelKey, Client, ConnectionKey, Fault, MessageContent, Position, QueueId, Record,
    RetainedMax, StreamChange, Time, Vhost, VhostConfig,
};

use crosstie_script::{Stage, milliseconds, number, pairs};

use output::Recorder;

/// Room for three messages, and for no body of more than about a hundred bytes beside two.
const RETAINED_MAX: RetainedMax = RetainedMax {
    messages: 3,
    bytes: 860,
};

/// Channel 2 of connection A is `A2`, its first is `A`.
type Name = String;

pub(super) struct Player {
    config: VhostConfig,
    vhost: Option<Vhost<char>>,
    out: Recorder,
    connections: BTreeMap<char, ConnectionKey>,
    channels: BTreeMap<Name, ChannelKey>,
    now: Time,
    is_store_manual: bool,
    is_work_manual: bool,
    /// What the store has, and what it has been given only.
    committed: Vec<Record>,
    uncommitted: Vec<Record>,
    /// The last position that the store was given.
    handed: Position,
    policies: policy::Written,
}

impl crosstie_script::Player for Player {
    fn stage(&mut self) -> &mut Stage {
        &mut self.out.stage
    }

    fn play(&mut self, head: &str, rest: &str) -> Result<(), String> {
        if let Some(who) = head.strip_suffix(">>") {
            self.send(who, rest)?;
            return self.out.take_answer(who);
        }
        if let Some(who) = head.strip_suffix('>') {
            return self.send(who, rest);
        }
        if let Some(who) = head.strip_suffix(':') {
            return self.come_or_go(who, rest);
        }
        match (head, rest) {
            ("vhost", _) => self.configure(rest),
            ("tick", _) => self.tick(rest),
            ("due", _) => self.expect_due(rest),
            ("holds", _) => self.expect_counts(rest),
            ("counted", _) => tally::expect(self, rest),
            ("work", "manual") => {
                self.is_work_manual = true;
                Ok(())
            }
            ("work", _) => {
                self.with_vhost(|vhost, now, out| vhost.work(now, u32::MAX, out));
                Ok(())
            }
            ("store", "manual") => {
                self.is_store_manual = true;
                Ok(())
            }
            ("commit", "fails") => {
                let records = self.take_records();
                self.uncommitted.extend(records);
                let places: Vec<_> = self.uncommitted.iter().filter_map(place).collect();
                self.vhost().withdraw(&places);
                let position = self.vhost().journal().position;
                self.with_vhost(|vhost, now, out| vhost.handle_not_committed(now, position, out));
                Ok(())
            }
            ("streams", "fail") => {
                self.fail_streams();
                Ok(())
            }
            ("streams", "work") => {
                self.vhost().note_streams_going_on();
                self.with_vhost(|vhost, now, out| vhost.work(now, u32::MAX, out));
                Ok(())
            }
            ("commit", "") => {
                self.commit();
                Ok(())
            }
            ("restart", policy) => self.restart_under(policy),
            ("rest", "") => {
                self.rest();
                Ok(())
            }
            ("copy", "") => {
                self.copy();
                Ok(())
            }
            ("trace", _) => self.trace(rest),
            ("purge" | "delete", _) => self.operate(head, rest),
            ("policy", _) => self.set_policy(PolicyKind::User, rest),
            ("operator-policy", _) => self.set_policy(PolicyKind::Operator, rest),
            ("policies", _) => self.expect_policies(rest),
            ("retained", _) => self.expect_retained(rest),
            (who, state) => self.set_socket(who, state),
        }
    }

    fn finish(&mut self) -> Result<(), String> {
        self.is_work_manual = false;
        for key in std::mem::take(&mut self.connections).into_values() {
            self.with_vhost(|vhost, now, out| vhost.close_connection(now, key, out));
        }
        self.out.stage.clear();
        let names: Vec<_> = self.vhost().queues().map(|queue| queue.name).collect();
        for name in names {
            self.with_vhost(|vhost, now, out| {
                // One that is another's dead letters' end may have gone with it.
                let _ = vhost.delete_queue(now, &name, out);
            });
        }
        let names: Vec<_> = self.vhost().exchanges().map(|e| e.name).collect();
        for name in names {
            self.with_vhost(|vhost, now, _| {
                // Those that every vhost has stay.
                let _ = vhost.delete_exchange(now, &name);
            });
        }
        let counts = self.vhost().counts();
        if counts.memory_bytes != 0 || counts.connections + counts.channels != 0 {
            return Err(format!("when all had left, the vhost held {counts:?}"));
        }
        Ok(())
    }
}

impl Player {
    pub(super) fn new() -> Self {
        Self {
            config: VhostConfig::named("/"),
            vhost: None,
            out: Recorder::default(),
            connections: BTreeMap::new(),
            channels: BTreeMap::new(),
            now: Time(1_000_000),
            is_store_manual: false,
            is_work_manual: false,
            committed: Vec::new(),
            uncommitted: Vec::new(),
            handed: Position(0),
            policies: policy::Written::default(),
        }
    }

    /// What becomes of a connection's socket: whether it takes anything, and whether it is there.
    fn set_socket(&mut self, who: &str, state: &str) -> Result<(), String> {
        let connection = who.chars().next();
        match state {
            "full" => self.out.full.extend(connection),
            "overrun" => self.out.overrun.extend(connection),
            "gone" => self.out.gone.extend(connection),
            "takes" => {
                let who = connection.unwrap_or(' ');
                self.out.full.retain(|full| *full != who);
                self.out.overrun.retain(|overrun| *overrun != who);
                let key = *self.connections.get(&who).ok_or("is not connected")?;
                self.with_vhost(|vhost, now, out| vhost.resume(now, key, out));
            }
            _ => return Err(format!("no such line: {who} {state}")),
        }
        Ok(())
    }

    fn vhost(&mut self) -> &mut Vhost<char> {
        self.vhost
            .get_or_insert_with(|| Vhost::new(self.config.clone(), 42))
    }

    /// An input, and what its owner does after each.
    fn with_vhost<T>(
        &mut self,
        input: impl FnOnce(&mut Vhost<char>, Time, &mut Recorder) -> T,
    ) -> T {
        let mut vhost = self
            .vhost
            .take()
            .unwrap_or_else(|| Vhost::new(self.config.clone(), 42));
        let result = input(&mut vhost, self.now, &mut self.out);
        while !self.is_work_manual && vhost.has_backlog() {
            vhost.work(self.now, 100, &mut self.out);
        }
        vhost.flush_confirms(&mut self.out);
        self.vhost = Some(vhost);
        if !self.is_store_manual {
            self.commit();
        }
        result
    }

    fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.vhost().journal().records)
    }

    /// Streams cannot be written: those of their messages are refused that can be, and the others wait.
    fn fail_streams(&mut self) {
        let places: Vec<_> = self
            .vhost()
            .journal()
            .records
            .iter()
            .filter_map(place)
            .collect();
        let changes = std::mem::take(&mut self.vhost().journal().streams);
        let between = (self.handed, self.vhost().journal().position);
        let (mut refused, mut left) = (Vec::new(), Vec::new());
        for change in changes {
            if let StreamChange::Appended { id, append } = change {
                match self.vhost().is_refusable(&append.content) {
                    true => refused.push(append.content),
                    false => left.push(id),
                }
            }
        }
        self.with_vhost(|vhost, now, out| {
            vhost.refuse_contents(now, &refused, &places, between, out);
            vhost.note_failing_streams(left.into_iter());
        });
    }

    fn commit(&mut self) {
        let records = self.take_records();
        self.committed.append(&mut self.uncommitted);
        self.committed.extend(records);
        let mut vhost = self.vhost.take();
        if let Some(vhost) = &mut vhost {
            let position = vhost.journal().position;
            self.handed = position;
            vhost.handle_committed(position, &mut self.out);
        }
        self.vhost = vhost;
    }

    /// Ends in good order, and goes on.
    fn rest(&mut self) {
        self.with_vhost(|vhost, now, out| vhost.rest(now, out));
        self.commit();
        self.out.stage.clear();
        self.restart();
    }

    /// Goes on with what a copy of the store has.
    fn copy(&mut self) {
        let delivered = self.vhost().delivered();
        self.committed.extend(delivered);
        self.restart();
    }

    /// Goes on. With a policy, it counts until all is restored, and the present ones are known only then.
    fn restart_under(&mut self, policy: &str) -> Result<(), String> {
        if policy.is_empty() {
            self.restart();
            return Ok(());
        }
        let mut before = policy::Written::default();
        before.set(PolicyKind::User, policy)?;
        self.restart_with(Arc::new(before.policies()));
        Ok(())
    }

    fn restart(&mut self) {
        let policies = Arc::new(self.policies.policies());
        self.restart_with(policies);
    }

    fn restart_with(&mut self, before: Arc<Policies>) {
        self.connections.clear();
        self.channels.clear();
        self.uncommitted.clear();
        let mut vhost = Vhost::new(self.config.clone(), 43);
        vhost.set_policies(self.now, before, &mut self.out);
        for record in &self.committed {
            vhost.restore(self.now, record.clone());
        }
        vhost.restore_policies(Arc::new(self.policies.policies()));
        vhost.restored(self.now, &mut self.out);
        self.vhost = Some(vhost);
        // A store forgets that when the vhost goes on.
        self.committed
            .retain(|record| !matches!(record, Record::Rested { .. }));
    }

    fn configure(&mut self, attributes: &str) -> Result<(), String> {
        for (key, value) in pairs(attributes) {
            let number = || number(key, value);
            let limits = &mut self.config.limits;
            match key {
                "queues_max" => limits.queues_max = number()?,
                "connection_queues_max" => limits.connection_queues_max = number()?,
                "exchanges_max" => limits.exchanges_max = number()?,
                "bindings_max" => limits.bindings_max = number()?,
                "exchange_steps_max" => limits.exchange_steps_max = number()?,
                "pattern_nodes_max" => limits.pattern_nodes_max = number()?,
                "consumers_max" => limits.consumers_max = number()?,
                "connection_consumers_max" => limits.connection_consumers_max = number()?,
                "copy_keys_max" => limits.copy_keys_max = number()?,
                "input_steps_max" => self.config.input_steps_max = number()? as u32,
                "channels_max" => limits.channels_max = number()?,
                "transaction_messages_max" => limits.transaction_messages_max = number()?,
                "transaction_bytes_max" => limits.transaction_bytes_max = number()?,
                "history_bytes_max" => limits.history_bytes_max = number()?,
                "message_bytes_max" => limits.message_bytes_max = number()?,
                "consumer_timeout" => {
                    self.config.consumer_timeout_ms = Some(milliseconds(value)?);
                }
                "streams" => self.config.has_streams = value == "yes",
                "dead_letter_retry" => self.config.dead_letter_retry_ms = milliseconds(value)?,
                "definition_bytes_max" => limits.definition_bytes_max = number()?,
                _ => return Err(format!("no such setting: {key}={value}")),
            }
        }
        Ok(())
    }

    fn come_or_go(&mut self, who: &str, rest: &str) -> Result<(), String> {
        let letter = who.chars().next().ok_or("somebody")?;
        match rest.split_once(' ').unwrap_or((rest, "")) {
            ("connect", attributes) => {
                let client = client(attributes)?;
                let key = self.with_vhost(|vhost, _, _| vhost.open_connection(letter, client));
                self.connections.insert(letter, key);
                self.open(who, key, 1);
                Ok(())
            }
            ("open", _) => {
                let key = *self.connections.get(&letter).ok_or("is not connected")?;
                let number = who[1..].parse().unwrap_or(1);
                self.open(who, key, number);
                Ok(())
            }
            ("close", _) if who.len() > 1 => {
                let key = self.channels.remove(who).ok_or("is not open")?;
                self.with_vhost(|vhost, now, out| vhost.close_channel(now, key, out));
                Ok(())
            }
            ("close", _) => self.close(letter),
            _ => Err(format!("{who} can connect, open and close, not {rest}")),
        }
    }

    fn open(&mut self, who: &str, connection: ConnectionKey, number: u16) {
        match self.with_vhost(|vhost, _, _| vhost.open_channel(connection, number)) {
            Ok(key) => {
                self.channels.insert(who.to_owned(), key);
            }
            Err(fault) => self.out.stage.push_fault(who, fault.text),
        }
    }

    fn close(&mut self, who: char) -> Result<(), String> {
        let key = self.connections.remove(&who).ok_or("is not connected")?;
        self.channels.retain(|name, _| !name.starts_with(who));
        self.with_vhost(|vhost, now, out| vhost.close_connection(now, key, out));
        Ok(())
    }

    fn send(&mut self, who: &str, text: &str) -> Result<(), String> {
        let key = *self
            .channels
            .get(who)
            .ok_or_else(|| format!("{who} is not open"))?;
        let text = self.out.stage.labels.resolve(text)?;
        let request = input::read(&text)?;
        let result = self.with_vhost(|vhost, now, out| match &request.method() {
            Method::BasicPublish(publish) => {
                let bytes = request.properties();
                let properties = crosstie_amqp::Properties::from_bytes(&bytes)
                    .map_err(|error| error.to_string())?;
                let content = (properties, request.body.as_bytes());
                Ok(match request.has("retain") {
                    false => vhost.publish(now, key, publish, properties, content.1, out),
                    true => vhost
                        .publish_retained(now, key, publish, content, RETAINED_MAX, out)
                        .map(|had_room| assert_ne!(had_room, request.has("no-room"))),
                })
            }
            method => Ok::<_, String>(vhost.handle(now, key, method, out)),
        })?;
        match result {
            Ok(()) => Ok(()),
            Err(fault) => self.faulted(who, key, fault),
        }
    }

    fn faulted(&mut self, who: &str, key: ChannelKey, fault: Fault) -> Result<(), String> {
        self.out.stage.push_fault(who, fault.text);
        if fault.code.is_hard() {
            return self.close(who.chars().next().unwrap_or(' '));
        }
        self.channels.remove(who);
        self.with_vhost(|vhost, now, out| vhost.close_channel(now, key, out));
        Ok(())
    }

    fn tick(&mut self, duration: &str) -> Result<(), String> {
        self.now.0 += milliseconds(duration)?;
        self.with_vhost(|vhost, now, out| {
            if vhost.next_timeout().is_some_and(|due| due <= now) {
                vhost.handle_timeout(now, out);
            }
        });
        Ok(())
    }

    fn set_policy(&mut self, kind: PolicyKind, rest: &str) -> Result<(), String> {
        self.policies.set(kind, rest)?;
        let policies = Arc::new(self.policies.policies());
        self.with_vhost(|vhost, now, out| vhost.set_policies(now, policies, out));
        Ok(())
    }

    /// The names of a queue's policies, `-` for none.
    fn expect_policies(&mut self, rest: &str) -> Result<(), String> {
        let (name, expected) = rest.split_once(' ').ok_or("a queue, and its policies")?;
        let mut queues = self.vhost().queues();
        let queue = queues.find(|queue| *queue.name == *name);
        let queue = queue.ok_or("no such queue")?;
        let applied = queue.applied.as_deref();
        let names = [
            applied.and_then(Applied::policy),
            applied.and_then(Applied::operator_policy),
        ];
        let names = names.map(|policy| policy.map_or("-", |policy| policy.name()));
        let names = names.join(" ");
        match names == expected {
            true => Ok(()),
            false => Err(format!("the policies of {name} are {names}")),
        }
    }

    /// A routing key, and the body that it retains, `-` for none.
    fn expect_retained(&mut self, rest: &str) -> Result<(), String> {
        let (key, expected) = rest.split_once(' ').ok_or("a routing key, and a body")?;
        let now = self.now;
        let found = self.vhost().retained(now, key);
        let text = |found: &Arc<MessageContent>| String::from_utf8_lossy(found.body()).into_owned();
        let found = found.map_or_else(|| "-".to_owned(), text);
        match found == expected {
            true => Ok(()),
            false => Err(format!("{key} retains {found}")),
        }
    }

    fn trace(&mut self, state: &str) -> Result<(), String> {
        self.vhost().set_traced((state == "on").then(|| "n".into()));
        Ok(())
    }

    fn operate(&mut self, verb: &str, rest: &str) -> Result<(), String> {
        let (name, count) = rest.split_once(' ').ok_or("a queue, and how many")?;
        let went = self.with_vhost(|vhost, now, out| match verb {
            "purge" => vhost.purge_queue(now, name, out),
            _ => vhost.delete_queue(now, name, out),
        });
        match went {
            Ok(went) if went.to_string() == count => Ok(()),
            other => Err(format!("it said {other:?}")),
        }
    }

    fn expect_due(&mut self, rest: &str) -> Result<(), String> {
        let expected = match rest.strip_prefix("in ") {
            Some(duration) => Some(Time(self.now.0 + milliseconds(duration)?)),
            None => None,
        };
        let due = self.vhost().next_timeout();
        match due == expected {
            true => Ok(()),
            false => Err(format!("next timeout is {due:?}, now is {:?}", self.now)),
        }
    }

    fn expect_counts(&mut self, rest: &str) -> Result<(), String> {
        let counts = self.vhost().counts();
        for (key, value) in pairs(rest) {
            let held = match key {
                "ready" => counts.messages_ready,
                "unacked" => counts.messages_unacknowledged,
                "queues" => counts.queues,
                "exchanges" => counts.exchanges,
                "bindings" => counts.bindings,
                "consumers" => counts.consumers,
                "channels" => counts.channels,
                "memory" => counts.memory_bytes,
                "expired" => counts.expired as usize,
                "definitions" => counts.definition_bytes,
                "nodes" => counts.pattern_nodes,
                "dropped" => counts.dropped as usize,
                "history" => counts.history_messages,
                "evicted" => counts.history_evicted as usize,
                "cut" => counts.dead_letters_cut as usize,
                "dying" => counts.dead_letters_waiting,
                "delayed" => counts.messages_delayed,
                "kept" => counts.dead_letters_kept,
                "retained" => self.vhost().retained_counts().0,
                "dead" => counts.dead_lettered as usize,
                "uncommitted" => counts.uncommitted_bytes,
                "records" => self.committed.len(),
                _ => return Err(format!("no such count: {key}")),
            };
            if held.to_string() != value {
                return Err(format!("expected {key}={value}, the vhost has {held}"));
            }
        }
        Ok(())
    }
}

fn client(attributes: &str) -> Result<Client, String> {
    let mut client = Client::unrestricted("guest");
    let mut patterns = [".*", ".*", ".*"];
    for (key, value) in pairs(attributes) {
        match key {
            "user" => client.user = value.into(),
            "cancel_notify" => client.consumer_cancel_notify = value != "no",
            "impersonator" => client.is_impersonator = value != "no",
            "configure" => patterns[0] = value,
            "write" => patterns[1] = value,
            "read" => patterns[2] = value,
            _ => return Err(format!("no such attribute: {key}")),
        }
    }
    let [configure, write, read] = patterns;
    let permissions = Permissions::parse(configure, write, read);
    client.permissions = Arc::new(permissions.map_err(|error| error.to_string())?);
    Ok(client)
}

fn place(record: &Record) -> Option<(QueueId, i64)> {
    match record {
        Record::Enqueued { queue, place, .. } => Some((*queue, *place)),
        _ => None,
    }
}
