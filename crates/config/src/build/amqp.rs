//! AMQP: users with passwords, vhosts with permissions, and stores that no two workers share.

use crosstie_auth::{PasswordHash, Permissions};

use super::Builder;
use super::names::Names;
use crate::amqp as defaults;
use crate::catalogue::AMQP;
use crate::files::Files;
use crate::model::{
    Amqp, AmqpAuthBackend, AmqpMechanism, AmqpPermission, AmqpTransport, AmqpUser, AmqpVhost,
    Endpoint, Transport, TransportKind,
};
use crate::plain::{Section, Word};
use crate::problem::Problem;
use crate::tree::{Span, quoted};
use crate::view::View;

/// A file that a worker writes to, with the position of its key.
pub(super) struct StoreFile {
    path: String,
    span: Span,
}

impl Builder<'_> {
    /// The broker behind the worker's AMQP transports; `None` without such a transport and without the key.
    pub(super) fn amqp(&mut self, worker: View<'_>, transports: &[Transport]) -> Option<Amqp> {
        let speaks = |transport: &Transport| matches!(transport.kind, TransportKind::Amqp(_));
        let is_spoken = transports.iter().any(speaks);
        let is_needed = transports
            .iter()
            .any(|transport| transport.kind.is_of_broker());
        let given = worker.object("amqp");
        if let Some(given) = given
            && !is_spoken
        {
            let message = "no transport of this worker has the type \"amqp\": nobody can connect";
            self.problems
                .push(Problem::warning(given.span, message.into()));
        }
        if given.is_none() && !is_needed {
            return None;
        }
        let object = worker.section("amqp");
        let read = Amqp::read(object);
        self.take_store(&read.store, object.span_of("store"));
        let mut amqp = Amqp {
            users: self.amqp_users(object),
            vhosts: self.amqp_vhosts(object),
            auth_backends: self.auth_backends(object),
            ..read
        };
        self.check_logins(object, worker, &amqp, transports);
        self.check_retained(object, &amqp, transports);
        match &amqp.definitions {
            Some(path) => {
                let path = path.clone();
                let amqp = Box::new(amqp.clone());
                self.names(
                    object.span_of("definitions"),
                    Files::Definitions { path, amqp },
                );
            }
            None => {
                defaults::complete(&mut amqp);
                self.check_permitted(object, &amqp);
            }
        }
        Some(amqp)
    }

    pub(super) fn amqp_transport(
        &mut self,
        transport: View<'_>,
        endpoint: &Endpoint,
    ) -> AmqpTransport {
        let options = transport.section("options");
        let asks_for_certificates = endpoint.asks_for_certificates();
        let mut mechanisms: Vec<_> = transport
            .texts("mechanisms")
            .filter_map(AmqpMechanism::of)
            .collect();
        if mechanisms.is_empty() {
            mechanisms = vec![AmqpMechanism::Plain, AmqpMechanism::AmqPlain];
            if asks_for_certificates {
                mechanisms.push(AmqpMechanism::External);
            }
        } else if mechanisms.contains(&AmqpMechanism::External) && !asks_for_certificates {
            let message = "\"EXTERNAL\" needs \"ca_certificates\" in the endpoint's \"tls\": \
                           without them no client shows a certificate";
            self.error(transport, "mechanisms", message);
        }
        AmqpTransport {
            mechanisms,
            ..AmqpTransport::read(options)
        }
    }

    /// Reserves a store for one worker or one realm.
    pub(super) fn take_store(&mut self, path: &str, at: Span) {
        if self.disabled {
            return;
        }
        if let Some(first) = self.stores.iter().find(|store| store.path == path) {
            let message = format!(
                "another worker or realm has the store {} too: give each a \"store\" of its own",
                quoted(path)
            );
            let problem = Problem::error(at, message);
            self.problems
                .push(problem.note_at(first.span, "it is taken first here"));
        }
        self.stores.push(StoreFile {
            path: path.to_owned(),
            span: at,
        });
    }

    fn amqp_users(&mut self, amqp: View<'_>) -> Vec<AmqpUser> {
        let mut names = Names::new("the AMQP user", "");
        let mut users = Vec::new();
        for user in amqp.objects("users") {
            let name = user.text("name").unwrap_or_default().to_owned();
            names.take(&name, user.span_of("name"), self.problems);
            let loopback_only = match user.given("loopback_only") {
                Some(_) => user.boolean("loopback_only"),
                None => name == defaults::GUEST,
            };
            users.push(AmqpUser {
                password: self.amqp_password(user, &name),
                is_remote_allowed: !loopback_only,
                ..AmqpUser::read(user)
            });
        }
        users
    }

    fn amqp_password(&mut self, user: View<'_>, name: &str) -> Option<PasswordHash> {
        let (password, hash) = (user.text("password"), user.text("password_hash"));
        if hash.is_none() && user.given("hashing_algorithm").is_some() {
            let message =
                "\"hashing_algorithm\" says how \"password_hash\" was made, and there is none";
            self.warn(user, "hashing_algorithm", message);
        }
        match (password, hash) {
            (Some(_), Some(_)) => {
                let message = "a user has a \"password\" or a \"password_hash\", not both";
                self.error(user, "password_hash", message);
                None
            }
            (Some(password), None) => Some(defaults::hash(name, password)),
            (None, Some(hash)) => match PasswordHash::parse(hash, user.text("hashing_algorithm")) {
                Ok(hash) => Some(hash),
                Err(error) => {
                    let at = user.span_of("password_hash");
                    let message = format!("\"password_hash\" in an AMQP user is {error}");
                    self.problems.push(Problem::error(at, message));
                    None
                }
            },
            (None, None) => None,
        }
    }

    fn amqp_vhosts(&mut self, amqp: View<'_>) -> Vec<AmqpVhost> {
        let mut names = Names::new("the vhost", "");
        let mut vhosts = Vec::new();
        for vhost in amqp.objects("vhosts") {
            let name = vhost.text("name").unwrap_or_default().to_owned();
            names.take(&name, vhost.span_of("name"), self.problems);
            let mut users = Names::new("the permission of the user", "");
            let mut permissions = Vec::new();
            for permission in vhost.objects("permissions") {
                let user = permission.text("user").unwrap_or_default();
                users.take(user, permission.span_of("user"), self.problems);
                permissions.push(self.amqp_permission(permission));
            }
            let replicated = vhost.object("replicated");
            let replicated = replicated.map(|replicated| self.replicated(replicated));
            vhosts.push(AmqpVhost {
                permissions,
                replicated,
                ..AmqpVhost::read(vhost)
            });
        }
        vhosts
    }

    fn amqp_permission(&mut self, permission: View<'_>) -> AmqpPermission {
        let read_permission = AmqpPermission::read(permission);
        let AmqpPermission {
            configure,
            write,
            read,
            ..
        } = &read_permission;
        if let Err(error) = Permissions::parse(configure, write, read) {
            self.error(permission, &error.access.to_string(), error.to_string());
        }
        read_permission
    }

    /// Reports permissions of missing users. With definitions the users are not known yet.
    fn check_permitted(&mut self, object: View<'_>, amqp: &Amqp) {
        for permission in object
            .objects("vhosts")
            .flat_map(|vhost| vhost.objects("permissions"))
        {
            let name = permission.text("user").unwrap_or_default();
            if amqp.users.iter().any(|user| user.name == name) {
                continue;
            }
            let at = permission.span_of("user");
            let known = amqp.users.iter().map(|user| user.name.as_str());
            let message = format!("there is no AMQP user {} in this worker", quoted(name));
            let mut problem = Problem::error(at, message);
            if let Some(near) = crate::near::nearest(name, known) {
                problem = problem.note(format!("did you mean {}?", quoted(near)));
            }
            self.problems.push(problem);
        }
    }

    /// Warns if the retained messages of one vhost, which never leave memory, could hold the memory alarm.
    fn check_retained(&mut self, object: View<'_>, amqp: &Amqp, transports: &[Transport]) {
        let (bytes, max) = (self.retained_bytes_max, amqp.limits.memory_bytes_max);
        let mqtt = transports
            .iter()
            .flat_map(|transport| transport.kind.mqtt());
        let mut vhosts = mqtt.filter_map(|mqtt| mqtt.options.vhost.as_ref());
        if vhosts.next().is_some() && bytes > max / 2 {
            let message = format!(
                "\"mqtt_retained_bytes_max\" is {bytes}, which is more than half of {max}: retained \
                 messages stay in memory, and could block all publishers for ever"
            );
            self.warn(object.section("limits"), "memory_bytes_max", message);
        }
    }

    /// Warns of users that cannot log in and that no joint uses.
    fn check_logins(
        &mut self,
        object: View<'_>,
        worker: View<'_>,
        amqp: &Amqp,
        transports: &[Transport],
    ) {
        let is_of_joint = |name: &str| {
            let mut joints = worker.objects("joints");
            joints.any(|joint| joint.text("user") == Some(name))
        };
        let by_certificate = transports.iter().any(|transport| match &transport.kind {
            TransportKind::Amqp(amqp) => amqp.mechanisms.contains(&AmqpMechanism::External),
            kind => kind
                .mqtt()
                .iter()
                .any(|mqtt| mqtt.options.certificate_login),
        });
        for (view, user) in object.objects("users").zip(&amqp.users) {
            let has_login = user.password.is_some() || view.given("password_hash").is_some();
            if !has_login && !by_certificate && !is_of_joint(&user.name) {
                let message = format!(
                    "the AMQP user {} has no password, and no transport takes certificates: \
                     nobody can log in as that",
                    quoted(&user.name)
                );
                self.problems.push(Problem::warning(view.span, message));
            }
        }
    }
}

/// The default for a worker whose first AMQP transport comes while it runs.
pub(crate) fn standard() -> Amqp {
    let mut amqp = Amqp {
        auth_backends: vec![AmqpAuthBackend::Internal],
        ..Amqp::read(View::empty(&AMQP))
    };
    defaults::complete(&mut amqp);
    amqp
}
