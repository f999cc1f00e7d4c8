//! Role, method and provider of sessions: each thread stores equal ones once for most of its sessions.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use crosstie_auth::wamp::Principal;
use crosstie_routing::{Identity, Login};

/// Maximum number of logins that a thread looks through. The sessions of others share nothing with later ones.
const RECENT_MAX: usize = 32;

thread_local! {
    static RECENT: RefCell<VecDeque<Arc<Login>>> = const { RefCell::new(VecDeque::new()) };
}

/// The identity of a session of that principal.
pub(crate) fn identity(principal: &Principal) -> Identity {
    let (method, provider) = (principal.authmethod, principal.authprovider);
    let names = (method.name(), provider.name());
    Identity {
        authid: principal.authid.as_str().into(),
        login: RECENT.with_borrow_mut(|recent| shared(recent, &principal.authrole, names)),
    }
}

/// The same login of an earlier session, if that is recent.
fn shared(
    recent: &mut VecDeque<Arc<Login>>,
    authrole: &Arc<str>,
    (authmethod, authprovider): (&str, &str),
) -> Arc<Login> {
    let known = recent.iter().find(|known| {
        known.authrole == *authrole
            && &*known.authmethod == authmethod
            && &*known.authprovider == authprovider
    });
    if let Some(known) = known {
        return Arc::clone(known);
    }
    let login = Arc::new(Login {
        authrole: Arc::clone(authrole),
        authmethod: authmethod.into(),
        authprovider: authprovider.into(),
    });
    if recent.len() >= RECENT_MAX {
        recent.pop_front();
    }
    recent.push_back(Arc::clone(&login));
    login
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_one_role_and_method_share_a_login() {
        let (user, guest) = ("user".into(), "guest".into());
        let mut recent = VecDeque::new();
        let mut login = |role, names| shared(&mut recent, role, names);
        let first = login(&user, ("ticket", "static"));
        for (role, names) in [
            (&guest, ("ticket", "static")),
            (&user, ("scram", "static")),
            (&user, ("ticket", "dynamic")),
        ] {
            let other = login(role, names);
            assert_eq!((&other.authrole, &*other.authmethod), (role, names.0));
            assert_eq!(&*other.authprovider, names.1);
            assert!(!Arc::ptr_eq(&first, &other));
        }
        assert!(Arc::ptr_eq(&first, &login(&user, ("ticket", "static"))));
    }

    #[test]
    fn a_thread_keeps_few_logins() {
        let mut recent = VecDeque::new();
        for role in 0..10 * RECENT_MAX {
            let role = format!("role{role}").into();
            let login = shared(&mut recent, &role, ("anonymous", "static"));
            assert_eq!(login.authrole, role);
            assert!(recent.len() <= RECENT_MAX);
        }
    }
}
