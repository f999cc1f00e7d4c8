//! Who serves which procedure (WAMP advanced profile, "Pattern-based Registrations" and "Shared
//! Registration").

use std::sync::Arc;

use crosstie_wamp::{InvocationPolicy, MatchPolicy, RegisterOptions, RegistrationId};
use rustc_hash::FxHashMap;
use slab::Slab;

use crate::authz::Action;
use crate::context::{Context, is_reserved, reserved_uri};
use crate::fault::{Fault, error};
use crate::pattern::PatternMap;
use crate::random::Random;
use crate::session::{Session, SessionIndex, Sessions};

/// A registration's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RegistrationKey(u32);

/// One (procedure, matching policy), and the callees that share it.
#[derive(Debug)]
pub(super) struct Registration {
    pub(super) id: RegistrationId,
    procedure: Arc<str>,
    pub(super) match_policy: MatchPolicy,
    invoke: InvocationPolicy,
    /// In the order of registration; never empty.
    callees: Vec<Callee>,
    /// The place in `callees` that is next in turn; past the end, the first one is.
    turn: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Callee {
    pub(super) session: SessionIndex,
    /// It keeps the time of its calls itself.
    pub(super) forward_timeout: bool,
}

#[derive(Debug)]
pub(super) struct Registrations {
    slab: Slab<Registration>,
    by_procedure: PatternMap<RegistrationKey>,
    by_id: FxHashMap<RegistrationId, RegistrationKey>,
    /// Ids are not used twice, so that a late INVOCATION cannot be taken for another procedure's.
    id_last: u64,
}

impl Registrations {
    pub(super) fn new(random: &mut Random) -> Self {
        Self {
            slab: Slab::new(),
            by_procedure: PatternMap::new(random.hash_keys()),
            by_id: FxHashMap::default(),
            id_last: 0,
        }
    }

    /// Adds a callee.
    pub(super) fn enter<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        options: &RegisterOptions,
        procedure: &str,
    ) -> Result<RegistrationId, Fault> {
        let policy = options.match_policy;
        context.check_pattern(procedure, policy)?;
        if is_reserved(procedure) {
            return Err(reserved_uri());
        }
        context.authorize(from, Action::Register, procedure, policy)?;
        let registrations_max = context.config.limits.registrations_max;
        let session = &mut context.sessions[from];
        if session.registrations.len() >= registrations_max {
            return Err(Fault::new(
                error::REGISTRATIONS_MAX,
                format!("a session may have {registrations_max} registrations"),
            ));
        }
        let key = match self.by_procedure.value(policy, procedure) {
            None => self.create(options, procedure),
            Some(key) => {
                let invoke = self[key].invoke;
                if invoke == InvocationPolicy::Single || session.registrations.contains(&key) {
                    return Err(Fault::new(
                        error::PROCEDURE_ALREADY_EXISTS,
                        format!("{procedure} is registered already"),
                    ));
                }
                if invoke != options.invoke {
                    let invoke = format!("{invoke:?}").to_lowercase();
                    return Err(Fault::new(
                        error::PROCEDURE_EXISTS_WITH_DIFFERENT_POLICY,
                        format!("{procedure} is registered with invoke {invoke} already"),
                    ));
                }
                key
            }
        };
        session.registrations.insert(key);
        let registration = &mut self.slab[key.0 as usize];
        registration.callees.push(Callee {
            session: from,
            forward_timeout: options.forward_timeout,
        });
        Ok(registration.id)
    }

    /// Removes a callee; whether it was one.
    pub(super) fn remove<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        registration: RegistrationId,
    ) -> bool {
        let key = self.by_id.get(&registration).copied();
        let key = key.filter(|key| context.sessions[from].registrations.remove(key));
        key.is_some_and(|key| {
            self.remove_callee(key, from);
            true
        })
    }

    /// Forgets a session that has left.
    pub(super) fn leave<H>(&mut self, index: SessionIndex, session: &mut Session<H>) {
        for key in session.registrations.drain() {
            self.remove_callee(key, index);
        }
    }

    /// The registration of exactly that procedure.
    pub(super) fn exact(&self, procedure: &str) -> Option<RegistrationKey> {
        self.by_procedure.exact(procedure)
    }

    /// The one pattern that serves a procedure without an exact registration (WAMP advanced
    /// profile, "Calls matching multiple registrations").
    pub(super) fn best_pattern(&self, procedure: &str) -> Option<RegistrationKey> {
        let prefix = self.by_procedure.longest_prefix(procedure);
        prefix.or_else(|| self.by_procedure.best_wildcard(procedure))
    }

    /// The callees that may serve one call, in the order in which they are asked.
    pub(super) fn candidates(
        &self,
        key: RegistrationKey,
        random: &mut Random,
    ) -> impl Iterator<Item = usize> + use<> {
        let registration = &self[key];
        let len = registration.callees.len();
        let (first, step) = match registration.invoke {
            InvocationPolicy::Single | InvocationPolicy::First => (0, 1),
            InvocationPolicy::Last => (len - 1, len - 1),
            InvocationPolicy::RoundRobin => (registration.turn, 1),
            InvocationPolicy::Random => (random.below(len), 1),
        };
        (0..len).map(move |attempt| (first + attempt * step) % len)
    }

    /// The sessions that share a registration.
    pub(super) fn callees(&self, key: RegistrationKey) -> impl Iterator<Item = SessionIndex> {
        self[key].callees.iter().map(|callee| callee.session)
    }

    pub(super) fn callee(&self, key: RegistrationKey, place: usize) -> Callee {
        self[key].callees[place]
    }

    /// A call went to the callee at `place`: the turn is the next one's.
    pub(super) fn served(&mut self, key: RegistrationKey, place: usize) {
        self.slab[key.0 as usize].turn = place + 1;
    }

    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    fn create(&mut self, options: &RegisterOptions, procedure: &str) -> RegistrationKey {
        self.id_last += 1;
        let id = RegistrationId(self.id_last);
        let procedure: Arc<str> = procedure.into();
        let key = RegistrationKey(self.slab.insert(Registration {
            id,
            procedure: Arc::clone(&procedure),
            match_policy: options.match_policy,
            invoke: options.invoke,
            callees: Vec::new(),
            turn: 0,
        }) as u32);
        self.by_procedure
            .insert(options.match_policy, procedure, key);
        self.by_id.insert(id, key);
        key
    }

    fn remove_callee(&mut self, key: RegistrationKey, session: SessionIndex) {
        let registration = &mut self.slab[key.0 as usize];
        let place = registration
            .callees
            .iter()
            .position(|callee| callee.session == session);
        if let Some(place) = place {
            registration.callees.remove(place);
            if place < registration.turn {
                registration.turn -= 1;
            }
        }
        if registration.callees.is_empty() {
            let registration = self.slab.remove(key.0 as usize);
            self.by_procedure
                .remove(registration.match_policy, &registration.procedure);
            self.by_id.remove(&registration.id);
        }
    }

    /// Asserts that tables and sessions say the same. Walks everything.
    pub(super) fn check_invariants<H>(&self, sessions: &Sessions<H>) {
        assert_eq!(self.by_procedure.len(), self.slab.len());
        assert_eq!(self.by_id.len(), self.slab.len());
        let mut memberships = 0;
        for (index, registration) in &self.slab {
            let key = RegistrationKey(index as u32);
            let (policy, procedure) = (registration.match_policy, &registration.procedure);
            assert_eq!(self.by_procedure.value(policy, procedure), Some(key));
            assert_eq!(self.by_id.get(&registration.id), Some(&key));
            assert!(registration.turn <= registration.callees.len());
            let single = registration.invoke == InvocationPolicy::Single;
            assert!(!single || registration.callees.len() == 1);
            for callee in &registration.callees {
                assert!(sessions[callee.session].registrations.contains(&key));
            }
            memberships += registration.callees.len();
        }
        let held: usize = sessions
            .iter()
            .map(|(_, session)| session.registrations.len())
            .sum();
        assert_eq!(held, memberships);
    }
}

impl std::ops::Index<RegistrationKey> for Registrations {
    type Output = Registration;

    fn index(&self, key: RegistrationKey) -> &Registration {
        &self.slab[key.0 as usize]
    }
}
