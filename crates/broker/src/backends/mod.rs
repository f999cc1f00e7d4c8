//! Backends of logins: the broker's own users, other servers, and tokens, in the configured order. The first that allows a
//! login also decides on the user's rights.
//!
//! ```text
//! log_in_now ─ known ─▶ LoggedIn
//!      └─ not known ─▶ log_in (on the keeper's thread; the client is not read) ─▶ LoggedIn, or the reasons
//! ```

mod cache;
mod charged;
mod http;
mod http_rights;
mod oauth2;
mod question;
mod rights;
mod token_keys;
mod token_rights;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crosstie_auth::oauth2::Token;
use crosstie_auth::{Origin, Refused, User, Users};
use crosstie_config::AmqpAuthBackend;
use crosstie_front::addresses::origin;
use crosstie_transport::{Account, Connection, PeerAddress};
use parking_lot::Mutex;
use tokio::runtime::Handle;

pub(crate) use self::http::Counts;
use self::http::{HttpBackend, NotAllowed};
pub(crate) use self::http_rights::HttpRights;
use self::oauth2::OAuth2Backend;
pub(crate) use self::rights::Rights;
pub(crate) use self::token_rights::{Checked, TokenRights};

/// The backends in their order.
pub(crate) struct Backends {
    order: Vec<Backend>,
    /// The configuration, and the contents of the files that it names.
    configured: (Vec<AmqpAuthBackend>, Vec<Vec<u8>>),
    /// Logins that other servers are asked for, by the origin of the client.
    asking: Mutex<HashMap<Origin, u32>>,
}

enum Backend {
    Internal,
    Http(Arc<HttpBackend>),
    OAuth2(Arc<OAuth2Backend>),
}

/// A user that has logged in, and the backend that decides on its rights.
#[derive(Clone)]
pub struct LoggedIn {
    pub user: Arc<User>,
    pub(crate) source: Source,
    /// The rights in the vhosts that an HTTP backend lets the user open, as far as it was asked.
    opened: BTreeMap<Arc<str>, Rights>,
}

/// Maximum time for all questions of a request about vhosts.
const VHOSTS_WITHIN: Duration = Duration::from_secs(10);

impl LoggedIn {
    fn new(user: Arc<User>, source: Source) -> Self {
        Self {
            user,
            source,
            opened: BTreeMap::new(),
        }
    }

    /// Asks the HTTP backend that has let the user in which of the vhosts it may open. One about which no answer comes in
    /// time is not opened.
    pub async fn ask_vhosts(&mut self, vhosts: &[Arc<str>], connection: &Connection) {
        if !matches!(self.source, Source::Http(_)) {
            return;
        }
        let asked = async {
            for vhost in vhosts {
                let rights = self.source.rights(&self.user, vhost, connection);
                if let Some(Rights::Http(rights)) = rights
                    && rights.may_open().await
                {
                    self.opened.insert(Arc::clone(vhost), Rights::Http(rights));
                }
            }
        };
        let _ = tokio::time::timeout(VHOSTS_WITHIN, asked).await;
    }

    /// Whether the user is one of the broker's own.
    pub fn is_internal(&self) -> bool {
        matches!(self.source, Source::Internal)
    }

    /// Whether the user may open a vhost by its token, or by an answer of [`Self::ask_vhosts`].
    pub fn may_open(&self, vhost: &str) -> bool {
        match &self.source {
            Source::Token(_, token) => token.opens(vhost),
            Source::Http(_) => self.opened.contains_key(vhost),
            Source::Internal => false,
        }
    }

    /// The rights in a vhost that the user may open.
    pub fn rights(&self, vhost: &str) -> Option<VhostRights> {
        match &self.source {
            Source::Token(backend, token) if token.opens(vhost) => {
                let rights = TokenRights::new(backend, token, vhost);
                Some(VhostRights(Rights::Token(Arc::new(rights))))
            }
            Source::Http(_) => self.opened.get(vhost).cloned().map(VhostRights),
            _ => None,
        }
    }
}

/// The rights of a user in a vhost that are not those of a user of the broker.
pub struct VhostRights(pub(crate) Rights);

/// The backend that has allowed a login.
#[derive(Clone, Default)]
pub(crate) enum Source {
    #[default]
    Internal,
    Http(Arc<HttpBackend>),
    Token(Arc<OAuth2Backend>, Arc<Token>),
}

/// The refusal of a login.
pub struct NotLoggedIn {
    /// For the log.
    pub why: String,
    /// All backends have answered: the password is wrong.
    pub(crate) is_guess: bool,
    /// The password is right, and the user may log in from this machine alone.
    pub is_loopback_only: bool,
}

/// An attempt to log in.
pub(crate) struct Attempt<'a> {
    pub(crate) name: &'a str,
    /// `None`: a certificate has proven the name.
    pub(crate) password: Option<&'a [u8]>,
    pub(crate) is_loopback: bool,
}

/// A login that is not decided: other servers are asked, from this place of the order on.
pub(crate) struct Undecided {
    from: usize,
    reasons: Reasons,
}

/// Why the backends that were asked have refused a login.
#[derive(Default)]
struct Reasons {
    texts: Vec<String>,
    is_unanswered: bool,
    is_loopback_only: bool,
}

/// Maximum number of logins of one origin that are asked for at a time: a right one is known to the others of its client
/// at once, and wrong ones are guesses.
const ORIGIN_ASKING_MAX: u32 = 4;

/// RabbitMQ restricts the user of this name to its own machine, whichever backend knows it.
const GUEST: &str = "guest";

impl Backends {
    /// Fetched keys of tokens are taken from the former backends. An error names the file and its fault.
    pub(crate) fn new(
        configured: &[AmqpAuthBackend],
        directory: &Path,
        (counts, account): (&Arc<Counts>, &Arc<Account>),
        keeper: &Handle,
        former: Option<&Self>,
    ) -> Result<Self, String> {
        let former = former.and_then(Self::oauth2);
        let order = configured.iter().map(|configured| -> io::Result<Backend> {
            match configured {
                AmqpAuthBackend::Http(options) => {
                    let backend = HttpBackend::new(options, directory, counts, account)?;
                    Ok(Backend::Http(Arc::new(backend)))
                }
                AmqpAuthBackend::OAuth2(options) => {
                    let backend = OAuth2Backend::new(options, directory, counts, keeper, former)?;
                    Ok(Backend::OAuth2(Arc::new(backend)))
                }
                _ => Ok(Backend::Internal),
            }
        });
        let order = order.collect::<io::Result<_>>();
        Ok(Self {
            order: order.map_err(|e| e.to_string())?,
            configured: (configured.to_vec(), contents(configured, directory)),
            asking: Mutex::default(),
        })
    }

    /// Whether these are the configured ones, with the files as they are now.
    pub(crate) fn is_of(&self, configured: &[AmqpAuthBackend], directory: &Path) -> bool {
        self.configured.0 == configured && self.configured.1 == contents(configured, directory)
    }

    /// The server that decides on rights, if there is one.
    pub(super) fn http(&self) -> Option<&Arc<HttpBackend>> {
        self.order.iter().find_map(|backend| match backend {
            Backend::Http(http) => Some(http),
            _ => None,
        })
    }

    /// The backend that reads tokens, if there is one.
    pub(super) fn oauth2(&self) -> Option<&Arc<OAuth2Backend>> {
        self.order.iter().find_map(|backend| match backend {
            Backend::OAuth2(oauth2) => Some(oauth2),
            _ => None,
        })
    }

    /// Decides on a login by what is known here.
    pub(crate) fn log_in_now(
        &self,
        attempt: &Attempt<'_>,
        users: &Users,
    ) -> Result<LoggedIn, Undecided> {
        let mut reasons = Reasons::default();
        for (from, backend) in self.order.iter().enumerate() {
            let decided = match backend {
                Backend::Internal => Some(attempt.authenticate(users)),
                Backend::Http(http) => {
                    let known = http.known_login(attempt.name, attempt.password);
                    // A known user that may not come from there is refused by this backend alone.
                    known.map(|tags| {
                        let tags = tags.map_err(NotAllowed::Denied)?;
                        attempt.external(attempt.name, tags, Source::Http(Arc::clone(http)))
                    })
                }
                Backend::OAuth2(oauth2) => {
                    let read = oauth2.read_now(attempt.name, attempt.password);
                    read.map(|token| attempt.of_token(token.map_err(NotAllowed::Denied)?, oauth2))
                }
            };
            match decided {
                Some(Ok(logged_in)) => return Ok(logged_in),
                Some(Err(refused)) => reasons.push(refused),
                None => return Err(Undecided { from, reasons }),
            }
        }
        Err(Undecided {
            from: self.order.len(),
            reasons,
        })
    }

    /// Whether no other server needs to be asked: the login is refused for these reasons.
    pub(crate) fn refusal(&self, undecided: &Undecided) -> Option<NotLoggedIn> {
        (undecided.from == self.order.len()).then(|| undecided.reasons.refusal())
    }

    /// Asks the remaining backends.
    pub(crate) async fn log_in(
        &self,
        attempt: &Attempt<'_>,
        users: &Users,
        undecided: Undecided,
    ) -> Result<LoggedIn, NotLoggedIn> {
        let Undecided { from, mut reasons } = undecided;
        for backend in &self.order[from..] {
            let tried = match backend {
                Backend::Internal => attempt.authenticate(users),
                Backend::Http(http) => {
                    let tags = http.log_in(attempt.name, attempt.password).await;
                    tags.and_then(|tags| {
                        attempt.external(attempt.name, tags, Source::Http(Arc::clone(http)))
                    })
                }
                Backend::OAuth2(oauth2) => {
                    let token = oauth2.read(attempt.name, attempt.password).await;
                    token.and_then(|token| attempt.of_token(token, oauth2))
                }
            };
            match tried {
                Ok(logged_in) => return Ok(logged_in),
                Err(refused) => reasons.push(refused),
            }
        }
        Err(reasons.refusal())
    }

    /// Reserves a place for a login that other servers are asked for; `None` if the client's origin has too many.
    pub(crate) fn place(self: &Arc<Self>, connection: &Connection) -> Option<Place> {
        let origin = origin(connection.peer());
        let mut asking = self.asking.lock();
        let count = asking.entry(origin).or_default();
        (*count < ORIGIN_ASKING_MAX).then(|| {
            *count += 1;
            let backends = Arc::clone(self);
            Place { backends, origin }
        })
    }
}

/// A place for a login that other servers are asked for, while this lives.
pub(crate) struct Place {
    backends: Arc<Backends>,
    origin: Origin,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut asking = self.backends.asking.lock();
        if let Some(count) = asking.get_mut(&self.origin) {
            *count -= 1;
            if *count == 0 {
                asking.remove(&self.origin);
            }
        }
    }
}

impl NotLoggedIn {
    pub(crate) fn guess(why: String) -> Self {
        Self {
            is_guess: true,
            ..Self::unanswered(why)
        }
    }

    /// Nothing is known about the password.
    pub(crate) fn unanswered(why: String) -> Self {
        Self {
            why,
            is_guess: false,
            is_loopback_only: false,
        }
    }
}

impl Reasons {
    fn push(&mut self, refused: NotAllowed) {
        self.texts.push(match refused {
            NotAllowed::Denied(why) => why,
            NotAllowed::Elsewhere(why) => {
                self.is_loopback_only = true;
                why
            }
            NotAllowed::Unanswered(why) => {
                self.is_unanswered = true;
                why
            }
        });
    }

    fn refusal(&self) -> NotLoggedIn {
        NotLoggedIn {
            why: self.texts.join("; "),
            is_guess: !self.is_unanswered,
            is_loopback_only: self.is_loopback_only,
        }
    }
}

impl Attempt<'_> {
    /// Authenticates one of the broker's own users.
    fn authenticate(&self, users: &Users) -> Result<LoggedIn, NotAllowed> {
        let user = match self.password {
            Some(password) => users.authenticate(self.name, password, self.is_loopback),
            None => users.authenticate_external(self.name, self.is_loopback),
        };
        Ok(LoggedIn::new(user?, Source::Internal))
    }

    /// The user of a token.
    fn of_token(&self, token: Token, oauth2: &Arc<OAuth2Backend>) -> Result<LoggedIn, NotAllowed> {
        let (user, tags) = (Arc::clone(&token.user), token.tags.clone());
        let source = Source::Token(Arc::clone(oauth2), Arc::new(token));
        self.external(&user, tags, source)
    }

    /// A user that is not one of the broker's own.
    fn external(
        &self,
        name: &str,
        tags: Vec<String>,
        source: Source,
    ) -> Result<LoggedIn, NotAllowed> {
        if name == GUEST && !self.is_loopback {
            let name = name.to_owned();
            return Err(Refused::LoopbackOnly { name }.into());
        }
        let user = User {
            name: name.into(),
            password: None,
            tags,
            is_remote_allowed: true,
        };
        Ok(LoggedIn::new(Arc::new(user), source))
    }
}

impl Source {
    /// The rights of a user in a vhost that another backend decides on; `None` for the broker's own users.
    pub(crate) fn rights(
        &self,
        user: &User,
        vhost: &str,
        connection: &Connection,
    ) -> Option<Rights> {
        match self {
            Self::Internal => None,
            Self::Http(http) => {
                let address = match connection.peer() {
                    PeerAddress::Tcp(address) => Some(address.ip()),
                    PeerAddress::Unix(_) => None,
                };
                let rights = HttpRights::new(http, &user.name, vhost, &user.tags, address);
                Some(Rights::Http(Arc::new(rights)))
            }
            Self::Token(backend, token) => {
                let rights = TokenRights::new(backend, token, vhost);
                Some(Rights::Token(Arc::new(rights)))
            }
        }
    }
}

/// The contents of the files that backends name; empty for one that cannot be read.
fn contents(configured: &[AmqpAuthBackend], directory: &Path) -> Vec<Vec<u8>> {
    let files = configured.iter().flat_map(|configured| match configured {
        AmqpAuthBackend::Http(options) => &options.ca_certificates[..],
        // A file of keys is followed by its backend.
        AmqpAuthBackend::OAuth2(options) => options.ca_certificates(),
        _ => &[],
    });
    read_all(files, directory)
}

fn read_all<'a>(files: impl Iterator<Item = &'a String>, directory: &Path) -> Vec<Vec<u8>> {
    let read = files.map(|path| std::fs::read(directory.join(path)).unwrap_or_default());
    read.collect()
}
