//! The interpreter of the scripts: one case, line by line.

mod notation;

use std::collections::HashMap;

use crosstie_routing::{
    Allow, Authorizer, CacheScope, CallQueue, CallTimeoutUnit, CancelAnswers, ClientFeatures,
    CloseReason, Decision, Disclose, DiscloseMe, EmptyEligible, Identity, Note, OnLeave, OpenCalls,
    Outbox, Permission, Question, Realm, RealmConfig, Recording, RefusalCause, Refused,
    RequestIdCheck, Retention, Role, RoleMatch, SessionKey, SessionRemoval, Time, Verdict,
    Violation,
};
use crosstie_script::{Stage, milliseconds, pairs};
use crosstie_wamp::uri::UriCheck;
use crosstie_wamp::{Dict, Message};

pub(super) struct Player {
    config: RealmConfig,
    realm: Option<Realm<char>>,
    out: Recorder,
    sessions: HashMap<char, SessionKey>,
    now: Time,
    steps_at_once_max: Option<u32>,
    removal: Option<SessionRemoval>,
    open_calls: OpenCalls,
    /// Messages that an authorizer is to be asked about.
    judged: HashMap<char, (String, Question)>,
}

struct Recorder {
    stage: Stage,
    asked: Option<(char, Question)>,
    refusing: HashMap<char, Refused>,
    closed: Vec<char>,
    /// Bytes that the realm holds for each.
    held: HashMap<char, isize>,
    /// Bytes that it keeps for nobody in particular.
    kept: usize,
}

impl Outbox<char> for Recorder {
    fn send(&mut self, to: &char, message: &Message<'_>) -> Result<(), Refused> {
        assert!(
            !self.closed.contains(to),
            "{to} is closed, and is sent {message:?}"
        );
        match self.refusing.get(to) {
            // Only what carries a foreign payload can be too long or not representable.
            Some(Refused::TooLong | Refused::Unrepresentable(_))
                if message
                    .payload()
                    .is_none_or(|payload| payload.args != b"[1]") => {}
            Some(refused) => return Err(*refused),
            None => {}
        }
        self.stage.push(to, notation::write(message));
        Ok(())
    }

    fn publish(&mut self, event: &Message<'_>, receivers: &mut dyn Iterator<Item = &char>) {
        for receiver in receivers {
            let _ = self.send(receiver, event);
        }
    }

    fn note(&mut self, what: Note, count: usize) {
        self.stage.push('-', format!("NOTE {what:?} {count}"));
    }

    fn hold(&mut self, session: &char, delta: isize) {
        *self.held.entry(*session).or_default() += delta;
    }

    fn keep(&mut self, bytes: usize) {
        self.kept = bytes;
    }

    fn ask(&mut self, session: &char, question: Question) {
        self.asked = Some((*session, question));
    }

    fn goodbye(&mut self, session: &char, reason: &str, message: Option<&str>) {
        let text = format!("GOODBYE {reason} {}", message.unwrap_or_default());
        self.stage.push(session, text.trim_end().to_owned());
    }

    fn close(&mut self, session: &char, reason: CloseReason) {
        self.closed.push(*session);
        self.stage.push(session, format!("CLOSED {reason:?}"));
    }
}

impl crosstie_script::Player for Player {
    fn stage(&mut self) -> &mut Stage {
        &mut self.out.stage
    }

    fn play(&mut self, head: &str, rest: &str) -> Result<(), String> {
        let mut characters = head.chars();
        let who = characters.next().unwrap_or(' ');
        match (head, characters.as_str()) {
            ("realm", _) => self.configure(rest),
            ("permit", _) => self.permit(rest),
            ("trustlevel", _) => self.trustlevel(rest),
            ("speaks_for_itself", _) => {
                let role = self.config.roles.iter_mut().find(|role| role.name == rest);
                role.ok_or("permit something first")?.may_forward = false;
                Ok(())
            }
            ("crossbar", _) => {
                let role = self.config.roles.iter_mut().find(|role| role.name == rest);
                role.ok_or("permit something first")?.role_match = RoleMatch::Crossbar;
                Ok(())
            }
            ("bound", _) => self.bound(rest),
            ("record", _) => self.record(rest),
            ("age", _) => self.age(rest),
            ("queue", _) => self.queue(rest),
            ("authorizer", _) => self.authorizer(rest),
            ("tick", _) => self.tick(rest),
            ("work", _) => {
                let steps_max = rest.parse().map_err(|_| "work needs a number of steps")?;
                let now = self.now;
                self.with_realm(|realm, out| realm.work(now, steps_max, out));
                Ok(())
            }
            ("due", _) => self.expect_due(rest),
            ("holds", _) => self.expect_counts(rest),
            ("start", _) => self.start_role(rest),
            ("change", _) => self.change_role(rest),
            ("stop", _) => self.stop_role(rest),
            ("end", _) => {
                self.removal = Some(self.realm().end());
                self.take_out(rest)
            }
            ("on", _) => self.take_out(rest),
            ("wait" | "open" | "cut", _) => self.stop_calls(head, rest),
            (_, ":") => match rest.split_once(' ').unwrap_or((rest, "")) {
                ("join", attributes) => self.join(who, attributes),
                ("leave", _) => self.leave(who),
                _ => Err(format!("{who} can join and leave, not {rest}")),
            },
            (_, ">") => self.send(who, rest, false),
            (_, "~>") => self.send(who, rest, true),
            (_, "=") => self.judge(who, rest),
            (_, "") if rest == "accepts" => {
                self.out.refusing.remove(&who);
                Ok(())
            }
            (_, "") => self.refuse(who, rest),
            _ => Err(format!("no such line: {head} {rest}")),
        }
    }

    fn finish(&mut self) -> Result<(), String> {
        let mut everyone: Vec<_> = self.sessions.keys().copied().collect();
        everyone.sort_unstable();
        for who in everyone {
            self.leave(who)?;
        }
        let now = self.now;
        self.with_realm(|realm, out| {
            while realm.has_backlog() {
                realm.work(now, 1, out);
            }
        });
        if let Some((who, bytes)) = self.out.held.iter().find(|(_, bytes)| **bytes != 0) {
            return Err(format!(
                "when all had left, {bytes} bytes were held for {who}"
            ));
        }
        let realm = self.realm();
        if realm.is_idle() {
            return Ok(());
        }
        Err(format!(
            "when all had left, the realm still held {:?}",
            realm.counts()
        ))
    }
}

impl Player {
    pub(super) fn new() -> Self {
        Self {
            config: RealmConfig::open("realm1"),
            realm: None,
            out: Recorder {
                stage: Stage::default(),
                asked: None,
                refusing: HashMap::new(),
                closed: Vec::new(),
                held: HashMap::new(),
                kept: 0,
            },
            sessions: HashMap::new(),
            now: Time(1_000_000),
            steps_at_once_max: None,
            removal: None,
            open_calls: OpenCalls::default(),
            judged: HashMap::new(),
        }
    }

    /// From now on a session takes no message.
    fn refuse(&mut self, who: char, how: &str) -> Result<(), String> {
        let refused = match how.strip_prefix("refuses ") {
            Some("full") => Refused::Full,
            Some("gone") => Refused::Gone,
            Some("toolong") => Refused::TooLong,
            Some("unrepresentable") => Refused::Unrepresentable("no form for it"),
            _ => return Err(format!("{who} can refuse and accept, not {how}")),
        };
        self.out.refusing.insert(who, refused);
        Ok(())
    }

    fn realm(&mut self) -> &mut Realm<char> {
        self.realm.get_or_insert_with(|| {
            let mut realm = Realm::new(self.config.clone(), 42);
            let steps_max = self.steps_at_once_max;
            steps_max
                .into_iter()
                .for_each(|max| realm.set_steps_at_once_max(max));
            realm
        })
    }

    fn configure(&mut self, attributes: &str) -> Result<(), String> {
        let config = &mut self.config;
        for (key, value) in pairs(attributes) {
            let number = value.parse::<usize>();
            let limit = number.clone().map_err(|_| format!("{key} needs a number"));
            match (key, value) {
                ("uri_check", "strict") => config.uri_check = UriCheck::Strict,
                ("request_id_check", "strict") => config.request_id_check = RequestIdCheck::Strict,
                ("disclose_me", "refuse") => config.disclose_me = DiscloseMe::Refuse,
                ("call_timeout_unit", "seconds") => {
                    config.call_timeout_unit = CallTimeoutUnit::Seconds;
                }
                ("meta_api", "off") => config.meta_api = false,
                ("on_leave", "crossbar") => config.on_leave = OnLeave::Crossbar,
                ("cancel_answers", "always") => config.cancel_answers = CancelAnswers::Always,
                ("cancel_answers", "kill_only") => config.cancel_answers = CancelAnswers::KillOnly,
                ("empty_eligible", "everybody") => {
                    config.empty_eligible = EmptyEligible::Everybody;
                }
                ("retained_events_max", _) => config.limits.retained_events_max = limit?,
                ("retained_bytes_max", _) => config.limits.retained_bytes_max = limit?,
                ("retained_event_bytes_max", _) => {
                    config.limits.retained_event_bytes_max = limit?;
                }
                ("retained_sent_max", _) => config.limits.retained_sent_max = limit?,
                ("history_bytes_max", _) => config.limits.history_bytes_max = limit?,
                ("history_answer_bytes_max", _) => {
                    config.limits.history_answer_bytes_max = limit?;
                }
                ("testaments_max", _) => config.limits.testaments_max = limit?,
                ("definitions_max", _) => config.limits.definitions_max = limit?,
                ("definitions_bytes_max", _) => config.limits.definitions_bytes_max = limit?,
                ("realm_definitions_max", _) => config.limits.realm_definitions_max = limit?,
                ("testaments_bytes_max", _) => config.limits.testaments_bytes_max = limit?,
                ("unacknowledged_events_max", _) => {
                    config.limits.unacknowledged_events_max = limit?;
                }
                ("unacknowledged_bytes_max", _) => config.limits.unacknowledged_bytes_max = limit?,
                ("sessions_max", _) => config.limits.sessions_max = limit?,
                ("subscriptions_max", _) => config.limits.subscriptions_max = limit?,
                ("registrations_max", _) => config.limits.registrations_max = limit?,
                ("calls_max", _) => config.limits.calls_max = limit?,
                ("kept_call_bytes_max", _) => config.limits.kept_call_bytes_max = limit?,
                ("kept_calls_bytes_max", _) => config.limits.kept_calls_bytes_max = limit?,
                ("steps_at_once_max", _) => self.steps_at_once_max = Some(limit? as u32),
                ("call_options_bytes_max", _) => config.limits.call_options_bytes_max = limit?,
                ("wildcard_shapes_max", _) => config.limits.wildcard_shapes_max = limit?,
                ("realm_subscriptions_max", _) => {
                    config.limits.realm_subscriptions_max = limit?;
                }
                ("realm_registrations_max", _) => {
                    config.limits.realm_registrations_max = limit?;
                }
                ("realm_calls_max", _) => config.limits.realm_calls_max = limit?,
                ("uri_bytes_max", _) => config.limits.uri_bytes_max = limit?,
                ("call_timeout_ms_max", _) => config.limits.call_timeout_ms_max = limit? as u64,
                _ => return Err(format!("no such setting: {key}={value}")),
            }
        }
        Ok(())
    }

    /// `permit ROLE POLICY URI ACTIONS [disclose=WHO]`, where `-` is the empty URI.
    fn record(&mut self, rest: &str) -> Result<(), String> {
        let words: Vec<_> = rest.split(' ').collect();
        let [policy, uri, events_max, age_ms_max] = words[..] else {
            return Err("record needs policy, uri, events, milliseconds".to_owned());
        };
        let number = |text: &str| text.parse::<u64>().map_err(|_| "no number".to_owned());
        self.config.history.push(Recording {
            uri: uri.trim_matches('-').to_owned(),
            match_policy: notation::match_policy(policy).ok_or("no such policy")?,
            events_max: number(events_max)? as usize,
            age_ms_max: number(age_ms_max)?,
        });
        Ok(())
    }

    /// `age POLICY URI MILLISECONDS` of retained events.
    fn age(&mut self, rest: &str) -> Result<(), String> {
        let words: Vec<_> = rest.split(' ').collect();
        let [policy, uri, age_ms_max] = words[..] else {
            return Err("age needs policy, uri, milliseconds".to_owned());
        };
        self.config.retention.push(Retention {
            uri: uri.trim_matches('-').to_owned(),
            match_policy: notation::match_policy(policy).ok_or("no such policy")?,
            age_ms_max: age_ms_max.parse().map_err(|_| "no number")?,
        });
        Ok(())
    }

    fn queue(&mut self, rest: &str) -> Result<(), String> {
        let words: Vec<_> = rest.split(' ').collect();
        let [policy, uri, calls_max] = words[..] else {
            return Err("queue needs policy, uri, calls".to_owned());
        };
        self.config.call_queues.push(CallQueue {
            uri: uri.trim_matches('-').to_owned(),
            match_policy: notation::match_policy(policy).ok_or("no such policy")?,
            calls_max: calls_max.parse().map_err(|_| "no number")?,
        });
        Ok(())
    }

    fn bound(&mut self, rest: &str) -> Result<(), String> {
        let mut words = rest.split(' ');
        let name = words.next().unwrap_or_default();
        let role = self.config.roles.iter_mut().find(|role| role.name == name);
        let limits = &mut role.ok_or("permit something first")?.limits;
        for word in words {
            let (key, value) = word.split_once('=').ok_or("bound needs key=value")?;
            let value = value.parse().map_err(|_| "bound needs a number")?;
            let limit = match key {
                "sessions" => &mut limits.sessions_max,
                "authid_sessions" => &mut limits.authid_sessions_max,
                "subscriptions" => &mut limits.subscriptions_max,
                "registrations" => &mut limits.registrations_max,
                "calls" => &mut limits.calls_max,
                _ => return Err(format!("a role has no bound {key}")),
            };
            *limit = Some(value);
        }
        Ok(())
    }

    fn permit(&mut self, rest: &str) -> Result<(), String> {
        let words: Vec<_> = rest.split(' ').collect();
        let [name, policy, uri, actions, more @ ..] = &words[..] else {
            return Err("permit needs role, policy, uri, actions".to_owned());
        };
        let allows = |action| actions.split(',').any(|listed| listed == action);
        let discloses = |who| {
            let listed = more.iter().find_map(|word| word.strip_prefix("disclose="));
            listed.is_some_and(|listed| listed.split(',').any(|name| name == who))
        };
        let permission = Permission {
            uri: uri.trim_matches('-').to_owned(),
            match_policy: notation::match_policy(policy).ok_or("no such policy")?,
            allow: Allow {
                call: allows("call"),
                register: allows("register"),
                publish: allows("publish"),
                subscribe: allows("subscribe"),
            },
            disclose: Disclose {
                caller: discloses("caller"),
                publisher: discloses("publisher"),
                callee: discloses("callee"),
            },
            cache: true,
            trustlevel: more
                .iter()
                .find_map(|word| word.strip_prefix("trustlevel="))
                .and_then(|level| level.parse().ok()),
        };
        let roles = &mut self.config.roles;
        match roles.iter_mut().find(|role| role.name == *name) {
            Some(role) => role.permissions.push(permission),
            None => {
                roles.push(Role::new(name, vec![permission]));
            }
        }
        Ok(())
    }

    /// `trustlevel ROLE NUMBER`, of a role that there is.
    fn trustlevel(&mut self, rest: &str) -> Result<(), String> {
        let (name, level) = rest
            .split_once(' ')
            .ok_or("trustlevel needs role and number")?;
        let role = self.config.roles.iter_mut().find(|role| role.name == name);
        let role = role.ok_or("there is no such role")?;
        role.trustlevel = Some(level.parse().map_err(|_| "it needs a number")?);
        Ok(())
    }

    /// `authorizer ROLE PROCEDURE [scope=…] [expiry_ms=…] [entries_max=…] [bytes_max=…]`
    fn authorizer(&mut self, rest: &str) -> Result<(), String> {
        let mut words = rest.splitn(3, ' ');
        let (Some(name), Some(procedure)) = (words.next(), words.next()) else {
            return Err("authorizer needs role and procedure".to_owned());
        };
        let mut authorizer = Authorizer::new(procedure);
        for (key, value) in pairs(words.next().unwrap_or_default()) {
            let number = || value.parse::<u64>().map_err(|_| "it needs a number");
            match (key, value) {
                ("scope", "role") => authorizer.cache.scope = CacheScope::Role,
                ("scope", "authid") => authorizer.cache.scope = CacheScope::Authid,
                ("scope", "session") => authorizer.cache.scope = CacheScope::Session,
                ("scope", "uri") => authorizer.cache.scope = CacheScope::Uri,
                ("expiry_ms", _) => authorizer.cache.expiry_ms = number()?,
                ("entries_max", _) => authorizer.cache.entries_max = number()? as usize,
                ("bytes_max", _) => authorizer.cache.bytes_max = number()? as usize,
                _ => return Err(format!("no such setting: {key}={value}")),
            }
        }
        self.config.roles.push(Role::asking(name, authorizer));
        Ok(())
    }

    /// `A= allow`, `A= deny`, each with `,disclose` and `,cache`; or `A= fail TEXT`.
    fn judge(&mut self, who: char, rest: &str) -> Result<(), String> {
        let judged = self.judged.remove(&who);
        let (text, question) = judged.ok_or_else(|| format!("nobody is asked about {who}"))?;
        let says = |word| rest.split(',').any(|said| said == word);
        let verdict = match rest.strip_prefix("fail ") {
            Some(text) => Verdict::Failed {
                cause: RefusalCause::AuthorizerFailed,
                text: text.to_owned(),
            },
            None => Verdict::Decided(Decision {
                allow: says("allow"),
                disclose: says("disclose"),
                cache: says("cache"),
                trustlevel: rest
                    .split(',')
                    .find_map(|said| said.strip_prefix("trustlevel="))
                    .and_then(|level| level.parse().ok()),
            }),
        };
        self.handle(who, &text, |realm, now, key, message, out| {
            realm.handle_judged(now, key, message, (question, verdict), out)
        })
    }

    fn join(&mut self, who: char, attributes: &str) -> Result<(), String> {
        let mut authid = who.to_lowercase().to_string();
        let mut role = "anonymous";
        let mut features = ClientFeatures::default();
        let mut authextra = Dict::new();
        for (key, value) in pairs(attributes) {
            match key {
                "role" => role = value,
                "authid" => value.clone_into(&mut authid),
                "features" => features = notation::features(value)?,
                "forgetful" => features = features.forgetful(),
                "elsewhere" => features = features.elsewhere(),
                "for_others" => features = features.for_others(),
                "authextra" => authextra = notation::dict(value)?,
                _ => return Err(format!("no such attribute: {key}")),
            }
        }
        let identity = Identity::new(authid, role, "anonymous", "static");
        let now = self.now;
        match self.realm().join(now, who, identity, features) {
            Ok((key, id)) => {
                self.sessions.insert(who, key);
                self.out.stage.labels.bind(who, id.0);
                self.with_realm(|realm, out| {
                    realm.keep_authextra(key, &authextra, out);
                    realm.welcomed(now, key, out);
                });
            }
            Err(refused) => {
                let text = format!("REFUSED {}", refused.uri());
                self.out.stage.push(who, text);
            }
        }
        Ok(())
    }

    fn leave(&mut self, who: char) -> Result<(), String> {
        let key = self
            .sessions
            .remove(&who)
            .ok_or_else(|| format!("{who} has not joined"))?;
        let now = self.now;
        self.with_realm(|realm, out| realm.leave(now, key, out));
        Ok(())
    }

    /// What is declined is not to be routed for what is in it.
    fn send(&mut self, who: char, text: &str, is_declined: bool) -> Result<(), String> {
        if self.judged.contains_key(&who) {
            return Err(format!("{who} is being judged"));
        }
        let text = self.out.stage.labels.resolve(text)?;
        self.handle(
            who,
            &text,
            |realm, now, key, message, out| match is_declined {
                true => realm.decline(now, key, message, "no good", out),
                false => realm.handle(now, key, message, out),
            },
        )
    }

    fn handle(
        &mut self,
        who: char,
        text: &str,
        act: impl FnOnce(
            &mut Realm<char>,
            Time,
            SessionKey,
            &Message<'_>,
            &mut Recorder,
        ) -> Result<(), Violation>,
    ) -> Result<(), String> {
        let key = self.sessions.get(&who).copied();
        let key = key.ok_or_else(|| format!("{who} has not joined"))?;
        let message = notation::read(text)?;
        let now = self.now;
        let outcome = self.with_realm(|realm, out| act(realm, now, key, &message, out));
        if let Err(violation) = outcome {
            self.out.stage.push_fault(who, violation.message);
            self.leave(who)?;
        }
        if let Some((asked, question)) = self.out.asked.take() {
            let mut asks = format!("ASK {} {}", question.action.name(), question.uri);
            if self.realm().waits_for_itself(key) {
                asks.push_str(" of itself");
            }
            self.out.stage.push(asked, asks);
            self.judged.insert(who, (text.to_owned(), question));
        }
        Ok(())
    }

    /// `start NAME`: a role that may do everything.
    fn start_role(&mut self, name: &str) -> Result<(), String> {
        match self.realm().start_role(&Role::everything(name)) {
            true => Ok(()),
            false => Err(format!("there is a role {name}")),
        }
    }

    /// `change NAME OTHER`: the role gets the rules of another one.
    fn change_role(&mut self, rest: &str) -> Result<(), String> {
        let (name, other) = rest.split_once(' ').ok_or("change needs two roles")?;
        let other = self.config.roles.iter().find(|role| role.name == other);
        let role = Role {
            name: name.to_owned(),
            ..other.ok_or("there is no such role")?.clone()
        };
        let mut is_known = false;
        self.with_realm(|realm, out| is_known = realm.change_role(&role, out));
        match is_known {
            true => Ok(()),
            false => Err(format!("there is no role {name}")),
        }
    }

    fn stop_role(&mut self, rest: &str) -> Result<(), String> {
        let (name, places) = rest.split_once(' ').unwrap_or((rest, ""));
        let stopped = self.realm().stop_role(name);
        self.removal = Some(stopped.ok_or_else(|| format!("there is no role {name}"))?);
        self.take_out(places)
    }

    /// Takes out those at so many places of the table, or all.
    fn take_out(&mut self, places: &str) -> Result<(), String> {
        let mut removal = self.removal.take().ok_or("no session is to be taken out")?;
        let (now, is_part) = (self.now, !places.is_empty());
        let places_max = match is_part {
            true => places.parse().map_err(|_| "places are a number")?,
            false => usize::MAX,
        };
        while let Some(ended) =
            self.with_realm(|realm, out| realm.take_out(now, &mut removal, places_max, out))
        {
            self.ended(ended);
            if is_part {
                self.removal = Some(removal);
                break;
            }
        }
        Ok(())
    }

    /// A stop waits for open calls, or ends them.
    fn stop_calls(&mut self, step: &str, rest: &str) -> Result<(), String> {
        match step {
            "wait" => self.wait_for_calls(rest),
            "open" => self.expect_open_calls(rest),
            _ => self.end_open_calls(),
        }
    }

    /// Waits from now on for the calls that are open, of one session or of all.
    fn wait_for_calls(&mut self, of: &str) -> Result<(), String> {
        let of = of.chars().next();
        let is_meant = |who: &char| of.is_none_or(|of| of == *who);
        self.open_calls = self.realm().open_calls(is_meant);
        Ok(())
    }

    /// How many of them may not have been answered.
    fn expect_open_calls(&mut self, count: &str) -> Result<(), String> {
        let mut open = std::mem::take(&mut self.open_calls);
        self.realm().forget_answered(&mut open);
        let held = open.len();
        self.open_calls = open;
        match held.to_string() == count {
            true => Ok(()),
            false => Err(format!(
                "expected {count} open calls, {held} are waited for"
            )),
        }
    }

    fn end_open_calls(&mut self) -> Result<(), String> {
        let (now, mut open) = (self.now, std::mem::take(&mut self.open_calls));
        while !open.is_empty() {
            self.with_realm(|realm, out| realm.end_open(now, &mut open, "the end", out));
        }
        Ok(())
    }

    /// Sessions that the realm gave back.
    fn ended(&mut self, ended: Vec<char>) {
        for who in ended {
            self.sessions.remove(&who);
            self.out.stage.push(who, "ENDED".to_owned());
        }
    }

    fn tick(&mut self, duration: &str) -> Result<(), String> {
        self.now = self.now.after_ms(milliseconds(duration)?);
        let now = self.now;
        self.with_realm(|realm, out| {
            if realm.next_timeout().is_some_and(|due| due <= now) {
                realm.handle_timeout(now, out);
            }
        });
        Ok(())
    }

    fn expect_due(&mut self, rest: &str) -> Result<(), String> {
        let expected = match rest.strip_prefix("in ") {
            Some(duration) => Some(self.now.after_ms(milliseconds(duration)?)),
            None => None,
        };
        let due = self.realm().next_timeout();
        if due == expected {
            Ok(())
        } else {
            Err(format!("next timeout is {due:?}"))
        }
    }

    fn expect_counts(&mut self, rest: &str) -> Result<(), String> {
        let counts = self.realm().counts();
        let decision_bytes = self.realm().decisions().bytes;
        if self.out.kept != decision_bytes {
            let kept = self.out.kept;
            return Err(format!("{decision_bytes} B are kept, and {kept} were said"));
        }
        for (key, value) in pairs(rest) {
            let held = match key {
                "sessions" => counts.sessions,
                "subscriptions" => counts.subscriptions,
                "registrations" => counts.registrations,
                "calls" => counts.calls,
                "waiting" => counts.calls_waiting,
                "kept_bytes" => counts.kept_bytes,
                "retained_events" => counts.retained_events,
                "retained_bytes" => counts.retained_bytes,
                "decisions" => self.realm().decisions().count,
                "hits" => self.realm().decisions().hits as usize,
                _ => return Err(format!("no such count: {key}")),
            };
            if held.to_string() != value {
                return Err(format!("expected {key}={value}, the realm holds {held}"));
            }
        }
        Ok(())
    }

    fn with_realm<R>(&mut self, act: impl FnOnce(&mut Realm<char>, &mut Recorder) -> R) -> R {
        self.realm();
        let realm = self.realm.as_mut().expect("it was made above");
        let result = act(realm, &mut self.out);
        realm.check_invariants();
        result
    }
}
