//! The interpreter of the scripts: one case, line by line.

mod input;
mod output;
pub(crate) mod store;

use std::collections::BTreeMap;

use crosstie_mqtt::{Properties, QoS, ReasonCode, Version};
use crosstie_script::{Stage, milliseconds, number, pairs};
use crosstie_topics::{
    Connect, ConnectionKey, Content, Counts, Space, SpaceConfig, Time, Violation, Will,
};

use output::Recorder;
use store::Store;

pub(crate) struct Player {
    config: SpaceConfig,
    space: Option<Space<char>>,
    out: Recorder,
    connections: BTreeMap<char, ConnectionKey>,
    /// Publications that the owner has not authorized, and their connections.
    held: BTreeMap<char, input::Publication>,
    keys_of_held: BTreeMap<char, ConnectionKey>,
    now: Time,
    store: Store,
    is_store_manual: bool,
    is_work_manual: bool,
    /// The owner learns of the end of a connection that the space has closed only by a line of the script.
    learns_late: bool,
}

impl Player {
    pub(crate) fn new() -> Self {
        Self {
            config: SpaceConfig::default(),
            space: None,
            out: Recorder::default(),
            connections: BTreeMap::new(),
            held: BTreeMap::new(),
            keys_of_held: BTreeMap::new(),
            now: Time(1_000_000),
            store: Store::default(),
            is_store_manual: false,
            is_work_manual: false,
            learns_late: false,
        }
    }

    fn configure(&mut self, text: &str) -> Result<(), String> {
        for (key, value) in pairs(text) {
            let limits = &mut self.config.limits;
            match key {
                "stored" => self.config.is_stored = true,
                "unmatched_untold" => self.config.tells_unmatched = false,
                "tells_all" => self.out.tells_all = true,
                "learns_late" => self.learns_late = true,
                "keeps_wills" => self.out.keeps_wills = true,
                "sessions_max" => limits.sessions_max = number(key, value)?,
                "session_subscriptions_max" => {
                    limits.session_subscriptions_max = number(key, value)?;
                }
                "subscriptions_max" => limits.subscriptions_max = number(key, value)?,
                "filter_levels_max" => limits.filter_levels_max = number(key, value)?,
                "levels_max" => limits.levels_max = number(key, value)?,
                "topic_bytes_max" => limits.topic_bytes_max = number(key, value)?,
                "retained_max" => limits.retained_max = number(key, value)?,
                "retained_bytes_max" => limits.retained_bytes_max = number(key, value)?,
                "queued_max" => limits.queued_max = number(key, value)?,
                "queued_bytes_max" => limits.queued_bytes_max = number(key, value)?,
                "in_flight_max" => limits.in_flight_max = number(key, value)?,
                "receive_max" => limits.receive_max = number(key, value)?,
                "unreleased_max" => limits.unreleased_max = number(key, value)?,
                "topic_alias_max" => limits.topic_alias_max = number(key, value)?,
                "expiry_max" => limits.session_expiry_max_s = number(key, value)?,
                "expiry_3" => limits.session_expiry_3_s = number(key, value)?,
                "steps_max" => limits.steps_max = number(key, value)?,
                "postponed_max" => limits.postponed_max = number(key, value)?,
                _ => return Err(format!("{key} is no setting")),
            }
        }
        Ok(())
    }

    /// Gives the space an input, then does what an owner does after each.
    fn with<T>(&mut self, input: impl FnOnce(&mut Space<char>, Time, &mut Recorder) -> T) -> T {
        let config = self.config.clone();
        let space = self.space.get_or_insert_with(|| Space::new(config, 7));
        let result = input(space, self.now, &mut self.out);
        while !self.is_work_manual && space.has_backlog() {
            space.work(self.now, 10, &mut self.out);
        }
        self.take_records();
        if !self.is_store_manual {
            self.commit();
        }
        result
    }

    fn take_records(&mut self) {
        if let Some(space) = &mut self.space {
            let journal = space.journal();
            let records = std::mem::take(&mut journal.records);
            if !records.is_empty() {
                self.store.take(journal.position, records);
            }
        }
    }

    fn commit(&mut self) {
        while let Some(position) = self.store.commit(usize::MAX)
            && let Some(space) = &mut self.space
        {
            space.handle_committed(self.now, position, &mut self.out);
            self.take_records();
        }
    }

    fn fail_store(&mut self) {
        if let Some(space) = &mut self.space {
            let position = space.journal().position;
            self.with(|space, now, out| space.handle_not_committed(now, position, out));
        }
        self.forget_closed();
    }

    fn kill(&mut self, client_id: &str) {
        let reason = ReasonCode::AdministrativeAction;
        self.with(|space, now, out| space.end_session(now, client_id, reason, out));
        self.forget_closed();
    }

    fn forget_closed(&mut self) {
        for closed in std::mem::take(&mut self.out.closed) {
            self.connections.remove(&closed);
        }
    }

    fn restart(&mut self) {
        self.store.lose_uncommitted();
        self.connections.clear();
        self.out.held.clear();
        let mut space = Space::new(self.config.clone(), 8);
        space.restore(self.now, self.store.records(), &mut self.out);
        self.space = Some(space);
        self.with(|_, _, _| ());
    }

    fn connect(&mut self, who: char, text: &str) -> Result<(), String> {
        let own = who.to_ascii_lowercase().to_string();
        let mut connect = Connect {
            version: Version::V5,
            client_id: &own,
            is_clean: false,
            session_expiry_s: 0,
            receive_max: u16::MAX,
            packet_bytes_max: u32::MAX,
            topic_alias_max: 0,
            will: None,
        };
        let mut will = None;
        let (mut will_content, mut delay_s) = (Content { ..EMPTY }, 0);
        for (key, value) in pairs(text) {
            match key {
                "v5" => {}
                "v311" => connect.version = Version::V311,
                "v31" => connect.version = Version::V31,
                "id" => connect.client_id = value,
                "clean" => connect.is_clean = true,
                "expiry" => connect.session_expiry_s = number(key, value)?,
                "receive" => connect.receive_max = number(key, value)?,
                "aliases" => connect.topic_alias_max = number(key, value)?,
                "packet" => connect.packet_bytes_max = number(key, value)?,
                "will" => will = value.split_once(':'),
                "will_qos" => will_content.qos = qos(value)?,
                "will_delay" => delay_s = number(key, value)?,
                "will_expiry" => will_content.expiry_s = Some(number(key, value)?),
                "will_retain" => will_content.retain = true,
                _ => return Err(format!("{key} is no word of connect")),
            }
        }
        connect.will = will.map(|(topic, payload)| {
            let content = Content {
                topic,
                payload: payload.as_bytes(),
                ..will_content
            };
            Will { content, delay_s }
        });
        self.out.versions.insert(who, connect.version);
        self.open(who, &connect);
        Ok(())
    }

    fn open(&mut self, who: char, connect: &Connect<'_>) {
        let is_work_manual = std::mem::replace(&mut self.is_work_manual, true);
        let answer = self.with(|space, now, out| space.connect(now, who, connect, out));
        self.is_work_manual = is_work_manual;
        for closed in std::mem::take(&mut self.out.closed) {
            // The owner learns later that the connection has ended.
            if !self.learns_late
                && let Some(key) = self.connections.remove(&closed)
            {
                self.with(|space, now, out| space.lose(now, key, out));
            }
        }
        let connected = match answer {
            Ok(connected) => connected,
            Err(reason) => {
                let text = format!("connack {:#04x}", reason.octet());
                self.out.stage.push(who, text);
                return;
            }
        };
        let is_present = if connected.is_present {
            "present"
        } else {
            "new"
        };
        let mut text = format!("connack {is_present}");
        if connected.is_assigned {
            text += &format!(" assigned={}", connected.client_id);
        }
        if let Some(expiry_s) = connected.session_expiry_s {
            text += &format!(" expiry={expiry_s}");
        }
        self.out.connecting.insert(who, text);
        self.connections.insert(who, connected.key);
        self.with(|space, now, out| space.open(now, &connected, out));
    }

    fn key(&self, who: char) -> Result<ConnectionKey, String> {
        let key = self.connections.get(&who).copied();
        key.ok_or_else(|| format!("{who} is not connected"))
    }

    /// Ends a connection as an owner does after a violation.
    fn fail(&mut self, who: char, key: ConnectionKey, violation: Violation) {
        let text = format!("{:#04x} {}", violation.reason.octet(), violation.text);
        self.out.stage.push_fault(who, text);
        self.connections.remove(&who);
        self.with(|space, now, out| space.lose(now, key, out));
    }

    fn expect_due(&self, text: &str) -> Result<(), String> {
        let due = self.space.as_ref().and_then(|space| space.next_timeout());
        let expected = match text.strip_prefix("in ") {
            Some(text) => Some(Time(self.now.0 + milliseconds(text)?)),
            None => None,
        };
        match due == expected {
            true => Ok(()),
            false => Err(format!("due at {due:?}, not {expected:?}")),
        }
    }

    fn expect_counts(&self, text: &str) -> Result<(), String> {
        let counts = self.space.as_ref().map(Space::counts).unwrap_or_default();
        for (key, value) in pairs(text) {
            let found = count(&counts, key).ok_or_else(|| format!("{key} is no count"))?;
            if found != number::<u64>(key, value)? {
                return Err(format!("{key} is {found}, not {value}"));
            }
        }
        Ok(())
    }

    /// Compares the bytes on the account of a connection with a bound: `A>100`, `A<100`.
    fn expect_accounts(&self, text: &str) -> Result<(), String> {
        for word in text.split(' ') {
            let at = word.find(['<', '>']).ok_or("an account has a bound")?;
            let (who, bound) = word.split_at(at);
            let held = self.out.held.get(&only(who)?).copied().unwrap_or_default();
            let bytes = number::<isize>("bytes", &bound[1..])?;
            let is_right = match bound.starts_with('<') {
                true => held < bytes,
                false => held > bytes,
            };
            if !is_right {
                return Err(format!("{who} is charged {held} bytes"));
            }
        }
        Ok(())
    }

    /// Lists all sessions with their subscriptions, and the retained topics, page by page.
    fn list(&mut self) {
        let Some(space) = &self.space else {
            return;
        };
        let mut from = Some(0);
        while let Some(place) = from {
            let page = space.sessions(place, 2);
            for session in page.items {
                let mut text = format!(
                    "session {} {} in_flight={} queued={}",
                    session.client_id,
                    if session.is_connected { "on" } else { "off" },
                    session.in_flight,
                    session.queued
                );
                let mut from = Some(0);
                while let Some(place) = from {
                    let page = space.subscriptions(&session.client_id, place, 1);
                    for one in page.items {
                        let qos = one.options.qos.octet();
                        text += &format!(" {}@{qos}", one.filter);
                    }
                    from = page.next;
                }
                self.out.stage.push('-', text);
            }
            from = page.next;
        }
        let mut page = space.retained(None, 1);
        loop {
            for one in &page.items {
                let text = format!("retained {} {}", one.topic, one.payload_bytes);
                self.out.stage.push('-', text);
            }
            let Some(next) = page.next else {
                return;
            };
            page = space.retained(Some(&next), 1);
        }
    }

    /// Sends a subscription a message that is retained elsewhere, or finds that the client has no room for it.
    fn send_kept(&mut self, who: char, more: &str) -> Result<(), String> {
        let key = self.key(who)?;
        let mut parts = more.splitn(3, ' ');
        let verb = parts.next().unwrap_or_default();
        let filter = parts.next().unwrap_or_default();
        let publication = input::Publication::parse(parts.next().unwrap_or_default())?;
        let is_done = self.with(|space, now, out| {
            publication
                .with(|content| space.send_retained_from_outside(now, key, filter, content, out))
        });
        match is_done == (verb == "kept") {
            true => Ok(()),
            false => Err(format!("it was {verb}: {}", !is_done)),
        }
    }
}

const EMPTY: Content<'static> = Content {
    topic: "",
    qos: QoS::AtMostOnce,
    retain: false,
    expiry_s: None,
    properties: Properties::EMPTY,
    payload: &[],
};

fn qos(text: &str) -> Result<QoS, String> {
    let octet = number("qos", text)?;
    QoS::from_octet(octet).ok_or_else(|| format!("{text} is no QoS"))
}

/// A reason in hexadecimal digits.
fn reason(text: &str) -> Result<ReasonCode, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let octet = u8::from_str_radix(digits, 16).map_err(|_| format!("{text} is no reason"))?;
    ReasonCode::from_octet(octet).ok_or_else(|| format!("{text} is no reason"))
}

fn count(counts: &Counts, key: &str) -> Option<u64> {
    Some(match key {
        "sessions" => counts.sessions as u64,
        "connected" => counts.connected as u64,
        "subscriptions" => counts.subscriptions as u64,
        "retained" => counts.retained as u64,
        "queued" => counts.queued as u64,
        "postponed" => counts.postponed as u64,
        "received0" => counts.received[0],
        "received1" => counts.received[1],
        "received2" => counts.received[2],
        "from_outside" => counts.from_outside,
        "sent0" => counts.sent[0],
        "sent1" => counts.sent[1],
        "sent2" => counts.sent[2],
        "repeated" => counts.repeated,
        "taken_over" => counts.taken_over,
        "wills" => counts.wills,
        "unmatched" => counts.unmatched,
        "expired_sessions" => counts.expired_sessions,
        "evicted_sessions" => counts.evicted_sessions,
        "expired_messages" => counts.expired_messages,
        "dropped_full" => counts.dropped_full,
        "dropped_postponed" => counts.dropped_postponed,
        "dropped_oldest" => counts.dropped_oldest,
        "dropped_large" => counts.dropped_large,
        "refused_by_receiver" => counts.refused_by_receiver,
        "refused_sessions" => counts.refused_sessions,
        "refused_subscriptions" => counts.refused_subscriptions,
        "refused_retained" => counts.refused_retained,
        "refused_receive_max" => counts.refused_receive_max,
        "refused_aliases" => counts.refused_aliases,
        "refused_topics" => counts.refused_topics,
        _ => return None,
    })
}

impl crosstie_script::Player for Player {
    fn stage(&mut self) -> &mut Stage {
        &mut self.out.stage
    }

    fn play(&mut self, head: &str, rest: &str) -> Result<(), String> {
        if let Some(who) = head.strip_suffix('>').and_then(|who| who.chars().next()) {
            return self.send(who, rest);
        }
        if let Some(who) = head.strip_suffix(':').and_then(|who| who.chars().next()) {
            if let Some(text) = rest.strip_prefix("connect") {
                return self.connect(who, text);
            }
            let key = self.key(who)?;
            self.connections.remove(&who);
            self.with(|space, now, out| space.lose(now, key, out));
            return Ok(());
        }
        match (head, rest) {
            ("space", _) => return self.configure(rest),
            ("tick", _) => {
                self.now.0 += milliseconds(rest)?;
                self.with(|space, now, out| space.handle_timeout(now, out));
            }
            ("due", _) => return self.expect_due(rest),
            ("holds", _) => return self.expect_counts(rest),
            ("accounts", _) => return self.expect_accounts(rest),
            ("list", _) => self.list(),
            ("store", _) => self.is_store_manual = true,
            ("commit", "fails") => self.fail_store(),
            ("commit", _) => self.commit(),
            ("restart", _) => self.restart(),
            ("work", "manual") => self.is_work_manual = true,
            ("work", "") => {
                self.is_work_manual = false;
                self.with(|_, _, _| ());
                self.is_work_manual = true;
            }
            ("work", steps) => {
                let steps = number("work", steps)?;
                self.with(|space, now, out| space.work(now, steps, out));
            }
            ("outside", _) => {
                let publication = input::Publication::parse(rest)?;
                self.with(|space, now, out| {
                    publication.with(|content| space.publish_from_outside(now, content, out));
                });
            }
            ("newer", topic) => self.with(|space, _, _| space.forget_retained(topic)),
            ("kill", id) => self.kill(id),
            (who, "full") => drop(self.out.full.insert(only(who)?)),
            // Retained elsewhere: sent to a subscription, or not while the client has no room.
            (who, more) if more.starts_with("kept ") || more.starts_with("unkept ") => {
                self.send_kept(only(who)?, more)?;
            }
            (who, "takes") => {
                let who = only(who)?;
                self.out.full.remove(&who);
                let key = self.key(who)?;
                self.with(|space, now, out| space.resume(now, key, out));
            }
            _ => return Err(format!("{head} is no input")),
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        (self.is_work_manual, self.is_store_manual) = (false, false);
        let Some(space) = &self.space else {
            return Ok(());
        };
        let sessions = space.sessions(0, usize::MAX).items;
        let retained = space.retained(None, usize::MAX).items;
        for session in sessions {
            let reason = ReasonCode::AdministrativeAction;
            self.with(|space, now, out| space.end_session(now, &session.client_id, reason, out));
        }
        let wills = self
            .space
            .as_ref()
            .map(|space| space.retained(None, usize::MAX).items);
        for topic in retained.into_iter().chain(wills.unwrap_or_default()) {
            let content = Content {
                topic: &topic.topic,
                retain: true,
                ..EMPTY
            };
            self.with(|space, now, out| space.publish_from_outside(now, &content, out));
        }
        let space = self.space.as_ref().ok_or("there is no space")?;
        if !space.is_empty() {
            return Err(format!(
                "{} bytes are left: {:?}",
                space.kept_bytes(),
                space.counts()
            ));
        }
        if let Some((who, bytes)) = self.out.held.iter().find(|(_, bytes)| **bytes != 0) {
            return Err(format!("{bytes} bytes of {who} are left"));
        }
        match self.store.subjects() {
            subjects if subjects.is_empty() => Ok(()),
            subjects => Err(format!("the store is left with {subjects:?}")),
        }
    }
}

fn only(who: &str) -> Result<char, String> {
    let mut letters = who.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) => Ok(letter),
        _ => Err(format!("{who} is no connection")),
    }
}
