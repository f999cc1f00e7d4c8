//! Draws operations, gives them to the realm and to the model, and compares.

mod draw;
mod draw_calls;
mod draw_meta;
mod draw_reflect;
mod recorder;

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use crosstie_routing::{Identity, Question, Realm, SessionKey, SessionRemoval, Time, Verdict};
use crosstie_wamp::SubscribeOptions;

use self::recorder::Recorder;
use crate::{Chance, Model, Name, Operation, Request, Sent};

/// One run.
pub struct Simulation {
    seed: u64,
    chance: Chance,
    /// Whether the remains of sessions, and overdue calls, are processed in turns of a few steps.
    cuts: bool,
    realm: Realm<Name>,
    model: Model,
    out: Recorder,
    keys: HashMap<Name, SessionKey>,
    /// Messages that authorizers are asked about.
    judged: Vec<Judged>,
    now: Time,
    name_last: Name,
    payload_last: u64,
    log: Vec<String>,
}

/// A message whose session sends nothing more before an authorizer has answered.
struct Judged {
    name: Name,
    key: SessionKey,
    request: Request,
    question: Question,
}

/// A run in which realm and model differ.
#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub text: String,
    /// The operations up to the one that failed.
    pub log: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tail = self.log.len().saturating_sub(12);
        for (step, line) in self.log.iter().enumerate().skip(tail) {
            writeln!(f, "{step:5} {line}")?;
        }
        writeln!(f, "{}", self.text)?;
        write!(f, "replay with SIM_SEED={}", self.seed)
    }
}

impl Simulation {
    pub fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let config = draw::config(&mut chance);
        let mut realm = Realm::new(config.clone(), chance.number());
        let cuts = !chance.one_in(4);
        if cuts {
            realm.set_steps_at_once_max(0);
        }
        Self {
            seed,
            realm,
            chance,
            cuts,
            model: Model::new(config),
            out: Recorder::default(),
            keys: HashMap::new(),
            judged: Vec::new(),
            now: Time(0),
            name_last: 0,
            payload_last: 0,
            log: Vec::new(),
        }
    }

    /// Plays that many operations, lets everyone leave, and returns the kinds of messages and errors that occurred.
    pub fn run(mut self, operations: usize) -> Result<BTreeSet<String>, Failure> {
        let outcome = self.play(operations);
        match outcome {
            Ok(()) => Ok(self.out.kinds),
            Err(text) => Err(Failure {
                seed: self.seed,
                text,
                log: self.log,
            }),
        }
    }

    fn play(&mut self, operations: usize) -> Result<(), String> {
        for _ in 0..operations {
            let operation = self.draw();
            self.step(&operation)?;
        }
        while let Some(member) = self.model.members.first() {
            self.step(&Operation::Leave { name: member.name })?;
        }
        let mut held = self.out.held.iter();
        if let Some((name, bytes)) = held.find(|(_, bytes)| **bytes != 0) {
            return Err(format!(
                "all have left, and {bytes} bytes are held for {name}"
            ));
        }
        if !self.realm.is_idle() || !self.model.is_idle() {
            return Err(format!(
                "all have left, and {:?} stayed",
                self.realm.counts()
            ));
        }
        Ok(())
    }

    fn step(&mut self, operation: &Operation) -> Result<(), String> {
        self.log.push(format!("{operation:?}"));
        let violation = self.apply(operation)?;
        self.realm.check_invariants();
        let asked = self.note_asked(operation)?;
        let sent = std::mem::take(&mut self.out.sent);
        for (name, sent) in &sent {
            if matches!(sent, Sent::Closed | Sent::Goodbye { .. }) {
                self.close(*name)?;
            }
        }
        self.model.check(operation, sent, (violation, asked))?;
        let (due, expected) = (self.realm.next_timeout(), self.model.next_timeout_ms());
        if due != expected.map(|milliseconds| Time(milliseconds * 1_000)) {
            return Err(format!("next timeout is {due:?}, expected {expected:?} ms"));
        }
        if let (true, Operation::Send { from, .. } | Operation::Judge { name: from, .. }) =
            (violation, operation)
        {
            // It may have been closed for the same message.
            if self.keys.contains_key(from) {
                self.step(&Operation::Leave { name: *from })?;
            }
        }
        Ok(())
    }

    /// Gives an operation to the realm; whether it was a violation.
    fn apply(&mut self, operation: &Operation) -> Result<bool, String> {
        let mut violation = false;
        match operation {
            Operation::Join {
                name,
                authid,
                authrole,
                features,
                welcomed,
            } => {
                let identity =
                    Identity::new(authid.as_str(), authrole.as_str(), "simulated", "simulated");
                let joined = self.realm.join(self.now, *name, identity, *features);
                let (key, id) = joined.map_err(|refused| refused.to_string())?;
                self.keys.insert(*name, key);
                self.model.join(*name, id.0, operation);
                if *welcomed {
                    self.realm.welcomed(self.now, key, &mut self.out);
                }
            }
            Operation::Welcome { name } => {
                let key = self.keys[name];
                self.realm.welcomed(self.now, key, &mut self.out);
            }
            Operation::Leave { name } => {
                let key = self.keys.remove(name).ok_or("it has no key")?;
                self.realm.leave(self.now, key, &mut self.out);
            }
            Operation::Send { from, request } => {
                let key = self.keys[from];
                let (realm, out, now) = (&mut self.realm, &mut self.out, self.now);
                let outcome = request.with_message(|message| realm.handle(now, key, message, out));
                violation = outcome.is_err();
            }
            Operation::Judge {
                name,
                request,
                verdict,
            } => violation = self.judge(*name, request, verdict)?,
            Operation::Refuse {
                name,
                refusing: Some(refusing),
            } => {
                self.out.refusing.insert(*name, *refusing);
            }
            Operation::Refuse {
                name,
                refusing: None,
            } => {
                self.out.refusing.remove(name);
            }
            Operation::Pass { milliseconds } => self.pass(*milliseconds),
            Operation::StopRole { authrole } => self.stop_role(authrole)?,
            Operation::End => {
                let removal = self.realm.end();
                self.take_out(removal)?;
            }
        }
        while self.realm.has_backlog() {
            self.work();
        }
        match self.out.complaint.take() {
            Some(complaint) => Err(complaint),
            None => Ok(violation),
        }
    }

    /// Passes a message to the realm again, with an authorizer's answer; returns whether it was a violation.
    fn judge(&mut self, name: Name, request: &Request, verdict: &Verdict) -> Result<bool, String> {
        let place = self.judged.iter().position(|judged| judged.name == name);
        let judged = self
            .judged
            .remove(place.ok_or("nobody was asked about it")?);
        let (realm, out, now) = (&mut self.realm, &mut self.out, self.now);
        let answer = (judged.question, verdict.clone());
        let outcome = request
            .with_message(|message| realm.handle_judged(now, judged.key, message, answer, out));
        Ok(outcome.is_err())
    }

    /// Keeps a question to an authorizer; returns the session of the message.
    fn note_asked(&mut self, operation: &Operation) -> Result<Option<Name>, String> {
        let Some((name, question)) = self.out.asked.take() else {
            return Ok(None);
        };
        match operation {
            Operation::Send { from, request } if *from == name => {
                self.judged.push(Judged {
                    name,
                    key: self.keys[from],
                    request: request.clone(),
                    question,
                });
                Ok(Some(name))
            }
            _ => Err(format!("a question about {name}, who has said nothing")),
        }
    }

    /// All in one part: sessions that leave together are not told of one another.
    fn take_out(&mut self, mut removal: SessionRemoval) -> Result<(), String> {
        let places_max = usize::MAX;
        while let Some(ended) =
            self.realm
                .take_out(self.now, &mut removal, places_max, &mut self.out)
        {
            self.ended(ended)?;
        }
        Ok(())
    }

    fn pass(&mut self, milliseconds: u64) {
        self.now = self.now.after_ms(milliseconds);
        while self.realm.next_timeout().is_some_and(|due| due <= self.now) {
            match self.cuts {
                true => self.work(),
                false => self.realm.handle_timeout(self.now, &mut self.out),
            }
        }
    }

    /// Stops a role, and starts it again.
    fn stop_role(&mut self, authrole: &str) -> Result<(), String> {
        let roles = &self.realm.config().roles;
        let role = roles.iter().find(|role| role.name == *authrole);
        let role = role.ok_or("no such role")?.clone();
        let stopped = self.realm.stop_role(authrole);
        self.take_out(stopped.ok_or("the role was stopped already")?)?;
        match self.realm.start_role(&role) {
            true => Ok(()),
            false => Err("a stopped role is still there".to_owned()),
        }
    }

    /// One short turn.
    fn work(&mut self) {
        let steps_max = 1 + self.chance.below(12) as u32;
        self.realm.work(self.now, steps_max, &mut self.out);
        self.realm.check_invariants();
    }

    /// The realm gave these back: it knows nothing of them any more.
    fn ended(&mut self, names: Vec<Name>) -> Result<(), String> {
        for name in names {
            let key = self.keys.remove(&name).ok_or("it was closed already")?;
            if self.realm.has(key) {
                return Err(format!("{name} is still in the realm"));
            }
        }
        Ok(())
    }

    /// The realm had a session closed: nothing that its owner still does with it has effect.
    fn close(&mut self, name: Name) -> Result<(), String> {
        let key = self.keys.remove(&name).ok_or("it was closed already")?;
        let before = self.realm.counts();
        let late = Request::Subscribe {
            request: 1,
            options: SubscribeOptions::default(),
            topic: "late".to_owned(),
        };
        let (realm, out, now) = (&mut self.realm, &mut self.out, self.now);
        let outcome = late.with_message(|message| realm.handle(now, key, message, out));
        realm.leave(now, key, out);
        if outcome.is_err() || !self.out.sent.is_empty() || self.realm.counts() != before {
            return Err("a closed session had an effect".to_owned());
        }
        Ok(())
    }
}
