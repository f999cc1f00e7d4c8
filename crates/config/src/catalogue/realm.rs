//! Keys of realms, roles and permissions.

use crosstie_routing::{CacheScope, CallQueue, Recording, Resumption, Retention};

use super::fabric::FABRIC;
use super::form::{OFF, ON, Rule, integer, integer_or_zero, list, object, one_of, tagged, text};
use super::rlink::RLINK;
use super::session_limits::{REALM_LIMITS, ROLE_LIMITS};
use super::store::REALM_STORE;
use super::table::tables;
use crate::model::{
    Allow, CancelAnswers, Disclose, DiscloseMe, EmptyEligible, EventStore, Fabric, MatchPolicy,
    OnLeave, RLink, RealmLimits, RequestIdCheck, Role, RoleMatch, UriCheck,
};

tables! {
    pub(crate) static REALM("realms[]", "a realm") {
        "name" = text(Rule::RealmName).required(), "Name of the realm, unique within the worker.";
        "id" = text(Rule::Any).inert("realms are known by their names");
        "options" = object(&REALM_OPTIONS).otherwise("the defaults"), "Routing options of the realm.";
        "roles" = list(&object(&ROLE)).optional().at_once(),
            "Roles of the realm with their permissions. A session with another role cannot join.";
        "fabric" = object(&FABRIC).otherwise("the realm exists on this node only").own(),
            "Connects the realm with those of the same name on [other nodes](fabric.md).";
        "limits" = object(&REALM_LIMITS).otherwise("the node's `limits` alone").own(),
            "Limits of the realm's [sessions](authorization.md#limits). The node's `limits` apply if they are lower.";
        "resumption" = object(&RESUMPTION).otherwise("a session ends with its connection").own(),
            "Lets sessions outlive their connections and continue over [another one](events.md#resumption).";
        "store" = tagged(&REALM_STORE).optional(), "Store for events and waiting calls.";
        "mqtt_store" = text(Rule::Path).otherwise("MQTT sessions and retained messages end with the process").own().restart(),
            "Directory with the [durable MQTT sessions](mqtt.md#durability) and retained MQTT messages of the realm.";
        "rlinks" = list(&object(&RLINK)).optional().at_once(),
            "[Links](rlinks.md) that forward events and calls to and from realms of other routers.";
    }

    impl Resumption = static RESUMPTION("realms[].resumption", "how sessions are resumed") {
        window_ms: u64 = integer(1, 86_400_000).required().own(),
            "Time that a session waits for its client to return, in milliseconds.";
        sessions_max: usize = integer(1, 1_000_000).or(1_000).own(),
            "Maximum number of waiting sessions. Another one evicts the session that has waited longest.";
    }

    /// A realm with its roles.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Realm = static REALM_OPTIONS("realms[].options", "a realm's options") {
        uri_check: UriCheck = one_of(&URI_CHECK).or_text("loose"), "Strictness of the URI check.";
        request_id_check: RequestIdCheck = one_of(&REQUEST_ID_CHECK).or_text("loose").own(),
            "Check of request ids. `strict` requires that they count up from 1, as specified. `loose` accepts any \
             id that no open call has.";
        disclose_me: DiscloseMe = one_of(&DISCLOSE_ME).or_text("allow").own(),
            "Permission for callers and publishers to disclose themselves with `disclose_me`.";
        call_timeout_unit: CallTimeoutUnit = one_of(&CALL_TIMEOUT_UNIT).or_text("milliseconds").own(),
            "Unit of a call's `timeout`. The specification has milliseconds, Crossbar.io seconds.";
        lone_surrogates: LoneSurrogates = one_of(&LONE_SURROGATES).or_text("replace").own(),
            "Handling of a lone surrogate in a JSON message, such as `\\ud83d` without its other half. `replace` \
             puts U+FFFD in its place. `refuse` rejects the message with `wamp.error.invalid_argument`; a \
             publication without acknowledgement is dropped.";
        unreadable_values: UnreadableValues = one_of(&UNREADABLE_VALUES).or_text("refuse").own(),
            "Handling of arguments that common WAMP libraries cannot decode and that would end the receivers' \
             sessions ([values](values.md#what-is-refused)). `refuse`: the sender gets ERROR \
             `wamp.error.invalid_argument`; a publication without acknowledgement is dropped. `convert`: receivers \
             get what their serializer can hold, and the event is dropped for the others. `pass`: receivers with the \
             sender's serializer get the arguments unread.";
        empty_eligible: EmptyEligible = one_of(&EMPTY_ELIGIBLE).or_text("nobody").own(),
            "Receivers of an event with an empty whitelist (`eligible: []`): none, or all, as in Crossbar.io.";
        cancel_answers: CancelAnswers = one_of(&CANCEL_ANSWERS).or_text("by_client").own(),
            "Answer to CANCEL with the ERROR that the specification requires. With the mode `kill` it is always \
             sent. `by_client` sends it to every client but Autobahn|JS, whose session would end with 3002. HELLO \
             identifies that client. `kill_only` sends it to no client in the other modes.";
        on_leave: OnLeave = one_of(&ON_LEAVE).or_text("crossbar").own(),
            "Arguments of `wamp.session.on_leave`: the session id alone, as in Crossbar.io, or the id, authid and \
             authrole, as specified. Python handlers written for one fail with the other.";
        disclose_router => discloses_router: bool = ON.own(),
            "Sends the node, worker, process and peer address of the session in WELCOME (`x_cb_node`, \
             `x_cb_worker`, `x_cb_pid`, `x_cb_peer`, at the top and in `authextra`), as Crossbar.io does. The node's \
             default id contains its host name.";
        "event_dispatching_chunk_size" = integer(1, i64::MAX)
            .inert("a large fan-out gives way to other work by itself");
        enable_meta_api => meta_api: bool = ON,
            "Provides the [meta API](meta-api.md): procedures and events about sessions, registrations and \
             subscriptions. Permissions decide on their use.";
        bridge_meta_api => is_meta_api_bridged: bool = OFF,
            "Provides the meta API in the [management realm](management.md#the-meta-api-of-a-realm), too.";
        let name: String = String::new();
        let is_call_timeout_unit_given: bool = false;
        let roles: Vec<Role> = Vec::new();
        let limits: RealmLimits = RealmLimits::default();
        let fabric: Option<Fabric> = None;
        let history: Vec<Recording> = Vec::new();
        let event_store: Option<EventStore> = None;
        let mqtt_store: Option<String> = None;
        let retention: Vec<Retention> = Vec::new();
        let call_queues: Vec<CallQueue> = Vec::new();
        let resumption: Option<Resumption> = None;
        let rlinks: Vec<RLink> = Vec::new();
    }

    words REQUEST_ID_CHECK("realms[].options.request_id_check") => RequestIdCheck { "loose" => Loose, "strict" => Strict }

    /// The unit of a call's `timeout`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum CallTimeoutUnit = words CALL_TIMEOUT_UNIT("realms[].options.call_timeout_unit") {
        /// As the specification has it.
        #[default]
        "milliseconds" => Milliseconds,
        /// As Crossbar.io has it.
        "seconds" => Seconds,
    }

    /// The handling of a JSON message with a lone surrogate.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum LoneSurrogates = words LONE_SURROGATES("realms[].options.lone_surrogates") {
        /// Each half is replaced by U+FFFD.
        #[default]
        "replace" => Replace,
        /// The message is rejected.
        "refuse" => Refuse,
    }

    /// The handling of a message whose arguments common WAMP libraries cannot decode.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum UnreadableValues = words UNREADABLE_VALUES("realms[].options.unreadable_values") {
        /// The sender gets an error.
        #[default]
        "refuse" => Refuse,
        /// Receivers get what their serializer can hold.
        "convert" => Convert,
        /// Receivers with the sender's serializer get the arguments unread.
        "pass" => Pass,
    }

    words EMPTY_ELIGIBLE("realms[].options.empty_eligible") => EmptyEligible {
        "nobody" => Nobody,
        "everybody" => Everybody,
    }
    words CANCEL_ANSWERS("realms[].options.cancel_answers") => CancelAnswers {
        "by_client" => ByClient,
        "always" => Always,
        "kill_only" => KillOnly,
    }
    words ON_LEAVE("realms[].options.on_leave") => OnLeave { "crossbar" => Crossbar, "specified" => Specified }
    words DISCLOSE_ME("realms[].options.disclose_me") => DiscloseMe { "allow" => Allow, "refuse" => Refuse }
    words URI_CHECK("realms[].options.uri_check") => UriCheck { "loose" => Loose, "strict" => Strict }

    pub(crate) static ROLE("realms[].roles[]", "a role") {
        "name" = text(Rule::NotEmpty).required(), "Name of the role, unique within the realm.";
        "id" = text(Rule::Any).inert("roles are known by their names");
        "permissions" = list(&object(&PERMISSION)).optional(),
            "Permissions of sessions with the role. Of the permissions that match a URI the most specific counts. \
             Without a match nothing is allowed.";
        "authorizer" = text(Rule::ExactUri).optional(),
            "Authorizer: the procedure of the realm that [decides](authorization.md#authorizers) in place of \
             `permissions`. The router calls it with the session, the URI, the action and the message's options.";
        "authorizer_timeout_ms" = integer(1, 3_600_000).or(5_000).own(),
            "Maximum time for the authorizer to answer, in milliseconds. After it the request fails.";
        "authorizer_cache" = one_of(&AUTHORIZER_CACHE).or_text("role").own(),
            "Scope of a cached decision: all sessions with the role, as in Crossbar.io; sessions with the same \
             authid; or the same session. `uri` shares it with sessions of all roles that have the same authorizer \
             and the same settings.";
        "authorizer_cache_ms" = integer_or_zero(1, 31_536_000_000).or(0).own(),
            "Lifetime of a cached decision, in milliseconds. 0 keeps it until it is evicted or the role ends.";
        "authorizer_cache_entries_max" = integer_or_zero(1, 100_000).or(10_000).own(),
            "Maximum number of cached decisions. Another one evicts the least recently used. 0 caches none.";
        "authorizer_cache_bytes_max" = integer(4_096, 1_073_741_824).or(4_194_304).own(),
            "Maximum size of cached decisions, in bytes, approximately. They count towards `queue_bytes_total_max`.";
        "allow-by-default" = OFF, "Allows everything to a role without `permissions` and `authorizer`.";
        "role_match" = one_of(&ROLE_MATCH).or_text("specific").own(),
            "Choice among several permissions that match a URI: the [most specific](authorization.md), or the one \
             that Crossbar.io finds.";
        "trustlevel" = integer_or_zero(0, 65_535).otherwise("none, unless the permission has one").own(),
            "[Trust level](authorization.md#trust-levels) of the role's publications and calls, sent in EVENT and \
             INVOCATION. 0 is the lowest.";
        "forward_for" = ON.own(),
            "Allows the option `forward_for`, which [links](rlinks.md#forward_for) of other routers send. A session \
             without the right gets an error.";
        "limits" = object(&ROLE_LIMITS).otherwise("the node's `limits` alone").own().new_sessions(),
            "Limits of sessions with the role. The node's `limits` apply if they are lower.";
    }

    words AUTHORIZER_CACHE("realms[].roles[].authorizer_cache") => CacheScope {
        "role" => Role,
        "authid" => Authid,
        "session" => Session,
        "uri" => Uri,
    }
    words ROLE_MATCH("realms[].roles[].role_match") => RoleMatch { "specific" => Specific, "crossbar" => Crossbar }

    static PERMISSION("realms[].roles[].permissions[]", "a permission") {
        "uri" = text(Rule::Uri).required(),
            "URI or pattern. Without `match`, a star at the end makes it a prefix (`com.*`), and stars elsewhere a \
             wildcard (`com.*.on_change`).";
        "match" = one_of(&MATCH).otherwise("derived from the stars in `uri`; `exact` without any"),
            "Matching policy of `uri`. With this key a star in `uri` is an ordinary character.";
        "allow" = object(&ALLOW).optional(), "Allowed actions.";
        "disclose" = object(&DISCLOSE).otherwise("sessions that ask for it"),
            "Sessions that are disclosed without asking for it.";
        "cache" = OFF, "Allows the decision to be cached. Decisions of static permissions always are.";
        "trustlevel" = integer_or_zero(0, 65_535).otherwise("the role's").own(),
            "[Trust level](authorization.md#trust-levels) of publications and calls under this permission.";
    }

    words MATCH("permissions[].match") => MatchPolicy { "exact" => Exact, "prefix" => Prefix, "wildcard" => Wildcard }

    impl Allow = static ALLOW("permissions[].allow", "a permission's allow") {
        call: bool = OFF, "Allows CALL.";
        register: bool = OFF, "Allows REGISTER.";
        publish: bool = OFF, "Allows PUBLISH.";
        subscribe: bool = OFF, "Allows SUBSCRIBE.";
    }

    impl Disclose = static DISCLOSE("permissions[].disclose", "a permission's disclose") {
        caller: bool = OFF, "Discloses the caller to callees, whether the caller asks for it or not.";
        publisher: bool = OFF, "Discloses the publisher to subscribers, whether the publisher asks for it or not.";
        callee: bool = OFF.own(),
            "Discloses the callee of procedures registered under this permission to callers. Crossbar.io always \
             does.";
    }
}
