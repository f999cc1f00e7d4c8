//! The rights of one client of an HTTP backend. A vhost asks for them while it handles a method; a right that is not known
//! is asked of the server, and the method is handled again.
//!
//! ```text
//! may (in the vhost's turn) ─ unknown ─▶ take_wanted ─▶ ask, while the client is not read ─▶ may, in the next turn
//! ```

use std::collections::VecDeque;
use std::mem;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crosstie_auth::{Access, Judge, ResourceKind};
use crosstie_transport::Connection;
use parking_lot::{Mutex, RwLock};

use super::charged::Charged;
use super::http::HttpBackend;
use super::question::{Asker, Question};

/// The rights of a user in a vhost, over one connection.
#[derive(Debug)]
pub(crate) struct HttpRights {
    /// A reload replaces it.
    backend: RwLock<Arc<HttpBackend>>,
    of: Asker,
    address: Option<IpAddr>,
    /// Set for a client of MQTT before it enters.
    client_id: OnceLock<Arc<str>>,
    state: Mutex<State>,
    charged: Charged,
}

#[derive(Debug, Default)]
struct State {
    /// The last accesses that were allowed, with the end of that: a publisher needs one for each message.
    allowed: VecDeque<(Question, Instant)>,
    allowed_bytes: usize,
    /// The answers that the waiting method has asked for. They count until it is handled.
    answers: Vec<(Question, bool)>,
    wanted: Option<Question>,
    is_asking: bool,
    /// The method that is handled has begun to ask. The answer may come before its turn ends.
    has_asked: bool,
}

/// Maximum number of allowed accesses that a connection remembers. RabbitMQ's channels remember 12.
const ALLOWED_MAX: usize = 32;

impl HttpRights {
    pub(super) fn new(
        backend: &Arc<HttpBackend>,
        user: &Arc<str>,
        vhost: &str,
        tags: &[String],
        address: Option<IpAddr>,
    ) -> Self {
        Self {
            backend: RwLock::new(Arc::clone(backend)),
            of: Asker {
                user: Arc::clone(user),
                vhost: vhost.into(),
                tags: tags.join(" ").into(),
            },
            address,
            client_id: OnceLock::new(),
            state: Mutex::default(),
            charged: Charged::default(),
        }
    }

    /// Names the client in questions about routing keys.
    pub(crate) fn set_client_id(&self, client_id: &str) {
        let _ = self.client_id.set(client_id.into());
    }

    /// From now on another backend is asked.
    pub(crate) fn follow(&self, backend: &Arc<HttpBackend>) {
        *self.backend.write() = Arc::clone(backend);
        let mut state = self.state.lock();
        state.allowed.clear();
        state.allowed_bytes = 0;
    }

    /// Whether the user may open the vhost.
    pub(crate) async fn may_open(&self) -> bool {
        let question = Question::Vhost {
            of: self.of.clone(),
            address: self.address,
        };
        self.backend().allows(&question).await.is_some()
    }

    /// Whether the last method lacked a right that is not known.
    pub(crate) fn wants(&self) -> bool {
        self.state.lock().wanted.is_some()
    }

    /// The same; then [`Self::ask`] is called.
    pub(crate) fn begins_to_ask(&self) -> bool {
        let mut state = self.state.lock();
        let begins = state.wanted.is_some() && !state.is_asking;
        state.is_asking |= begins;
        state.has_asked |= begins;
        begins
    }

    /// Whether an answer is to come.
    pub(crate) fn is_asking(&self) -> bool {
        self.state.lock().is_asking
    }

    /// Asks for the right that is wanted.
    pub(crate) async fn ask(&self) {
        let wanted = mem::take(&mut self.state.lock().wanted);
        let answer = match wanted {
            None => None,
            Some(question) => {
                let until = self.backend().allows(&question).await;
                Some((question, until))
            }
        };
        let mut state = self.state.lock();
        state.is_asking = false;
        if let Some((question, until)) = answer {
            if let Some(until) = until {
                state.remember(question.clone(), until);
            }
            state.answers.push((question, until.is_some()));
        }
    }

    /// A method was handled, or waits for the answer that it has asked for.
    pub(crate) fn note_handled(&self, connection: &Arc<Connection>) {
        let mut state = self.state.lock();
        if !mem::take(&mut state.has_asked) {
            state.answers.clear();
            state.wanted = None;
        }
        let bytes = state.allowed_bytes;
        drop(state);
        self.charged.set(self.of.bytes() + bytes, connection);
    }

    pub(super) fn charge(&self, connection: &Arc<Connection>) {
        let bytes = self.state.lock().allowed_bytes;
        self.charged.set(self.of.bytes() + bytes, connection);
    }

    /// Judges one access by what is known; wants to know it if nothing is.
    fn judge(
        &self,
        is_meant: impl Fn(&Question) -> bool,
        question: impl FnOnce(Asker) -> Question,
    ) -> bool {
        let mut state = self.state.lock();
        if let Some((_, answer)) = state.answers.iter().find(|(of, _)| is_meant(of)) {
            return *answer;
        }
        let now = Instant::now();
        let mut allowed = state.allowed.iter();
        if allowed.any(|(of, until)| *until > now && is_meant(of)) {
            return true;
        }
        let question = question(self.of.clone());
        match self.backend().known(&question) {
            Some((true, until)) => {
                state.remember(question, until);
                true
            }
            Some((false, _)) => false,
            None => {
                state.wanted = Some(question);
                false
            }
        }
    }

    fn backend(&self) -> Arc<HttpBackend> {
        Arc::clone(&self.backend.read())
    }
}

impl State {
    fn remember(&mut self, question: Question, until: Instant) {
        self.allowed.retain(|(of, _)| *of != question);
        if self.allowed.len() >= ALLOWED_MAX {
            self.allowed.pop_front();
        }
        self.allowed.push_back((question, until));
        self.allowed_bytes = self.allowed.iter().map(|(of, _)| of.bytes()).sum();
    }
}

impl Judge for HttpRights {
    fn may(&self, access: Access, kind: ResourceKind, name: &str) -> bool {
        let is_meant = |question: &Question| match question {
            Question::Resource {
                kind: of,
                name: named,
                access: to,
                ..
            } => *of == kind && *to == access && named == name,
            _ => false,
        };
        self.judge(is_meant, |of| Question::Resource {
            of,
            kind,
            name: name.to_owned(),
            access,
        })
    }

    fn may_topic(&self, access: Access, exchange: &str, routing_key: &str) -> bool {
        let is_meant = |question: &Question| match question {
            Question::Topic {
                exchange: of,
                access: to,
                routing_key: key,
                ..
            } => of == exchange && *to == access && key == routing_key,
            _ => false,
        };
        self.judge(is_meant, |of| Question::Topic {
            of,
            exchange: exchange.to_owned(),
            access,
            routing_key: routing_key.to_owned(),
            client_id: self.client_id.get().cloned(),
        })
    }
}
