//! The roles of sessions at the console, and the procedures that each may call.
//!
//! A session at the node's own socket may call everything. At the console no role may start a program, name a file of the
//! machine, or end the node: that is for those who can be the node's own user. A new procedure is in neither list.

use crosstie_config::{Allow, CONSOLE_ROLES, Disclose, MatchPolicy, Permission, Role};

/// Procedures of both roles. They read, and no answer has a secret. A `..` stands for a worker's id.
const READING: [&str; 35] = [
    "crossbar.get_status",
    "crossbar.get_system_stats",
    "crossbar.get_figures",
    "crossbar.get_histograms",
    "crossbar.get_certificates",
    "crossbar.get_workers",
    "crossbar.get_worker",
    "crossbar.worker..get_router_realms",
    "crossbar.worker..get_router_realm",
    "crossbar.worker..get_router_realm_roles",
    "crossbar.worker..get_router_realm_role",
    "crossbar.worker..get_router_sessions",
    "crossbar.worker..get_router_sessions_by_id",
    "crossbar.worker..get_router_session_counters",
    "crossbar.worker..get_router_registrations",
    "crossbar.worker..get_router_subscriptions",
    "crossbar.worker..get_router_transports",
    "crossbar.worker..get_router_transport",
    "crossbar.worker..get_router_realm_links",
    "crossbar.worker..get_router_realm_link",
    "crossbar.worker..get_fabric_realms",
    "crossbar.worker..get_router_joints",
    "crossbar.worker..get_router_joint",
    "crossbar.worker..get_router_components",
    "crossbar.worker..get_router_component",
    "crossbar.worker..get_amqp_state",
    "crossbar.worker..get_amqp_alarms",
    "crossbar.worker..get_amqp_vhosts",
    "crossbar.worker..get_amqp_queues",
    "crossbar.worker..get_amqp_exchanges",
    "crossbar.worker..get_amqp_bindings",
    "crossbar.worker..get_amqp_connections",
    "crossbar.worker..get_amqp_unroutable",
    "crossbar.worker..get_amqp_monitoring",
    "crossbar.worker..get_amqp_replicated_vhosts",
];

/// Further procedures of the administrator.
const CHANGING: [&str; 19] = [
    "crossbar.get_log",
    "crossbar.get_worker_log",
    "crossbar.reload",
    "crossbar.restart_worker",
    "crossbar.set_log_level",
    "crossbar.worker..close_router_session",
    "crossbar.worker..get_amqp_entries",
    "crossbar.worker..get_amqp_management",
    "crossbar.worker..request_amqp_management",
    "crossbar.worker..move_amqp_messages",
    "crossbar.worker..purge_amqp_queue",
    "crossbar.worker..delete_amqp_queue",
    "crossbar.worker..delete_amqp_exchange",
    "crossbar.worker..close_amqp_connection",
    "crossbar.worker..move_amqp_vhost",
    "crossbar.worker..trace_router_session",
    "crossbar.worker..trace_amqp_connection",
    "crossbar.read_trace",
    "crossbar.end_trace",
];

/// The roles of the console.
pub(super) fn console() -> [Role; 2] {
    let reading = || READING.iter().copied();
    let [reads, changes] = CONSOLE_ROLES;
    [
        role(reads, reading()),
        role(changes, reading().chain(CHANGING)),
    ]
}

fn role(name: &str, procedures: impl Iterator<Item = &'static str>) -> Role {
    let calls = procedures.map(|uri| {
        let match_policy = match uri.contains("..") {
            true => MatchPolicy::Wildcard,
            false => MatchPolicy::Exact,
        };
        let allow = Allow {
            call: true,
            ..Allow::default()
        };
        permission(uri, match_policy, allow)
    });
    Role {
        may_forward: false,
        ..Role::new(name, calls.collect())
    }
}

fn permission(uri: &str, match_policy: MatchPolicy, allow: Allow) -> Permission {
    Permission {
        uri: uri.to_owned(),
        match_policy,
        allow,
        disclose: Disclose::default(),
        cache: true,
        trustlevel: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::procedures::PROCEDURES;
    use super::*;

    #[test]
    fn listed_procedures_exist() {
        let mut procedures = PROCEDURES.iter().flat_map(|table| *table);
        let known: Vec<_> = procedures.by_ref().map(|row| row.uri).collect();
        for uri in READING.iter().chain(&CHANGING) {
            assert!(known.contains(uri), "{uri}");
        }
    }

    /// Readings of the node's own socket alone.
    const OWN_SOCKET: [&str; 5] = [
        "crossbar.get_public_key",
        "crossbar.worker..get_amqp_channels_max",
        "crossbar.worker..get_amqp_definitions",
        "crossbar.worker..get_amqp_login",
        "crossbar.worker..get_monitoring",
    ];

    #[test]
    fn each_reading_is_in_a_list() {
        let procedures = PROCEDURES.iter().flat_map(|table| *table);
        let readings = procedures
            .map(|row| row.uri)
            .filter(|uri| uri.contains("get_"));
        for uri in readings {
            let lists = [&READING[..], &CHANGING, &OWN_SOCKET];
            let count = lists.iter().filter(|list| list.contains(&uri)).count();
            assert_eq!(count, 1, "{uri}");
        }
    }

    /// Programs, files of the machine and the end of the node are for the node's own user.
    #[test]
    fn no_role_reaches_the_machine() {
        for word in [
            "start_",
            "stop_",
            "shutdown",
            "upgrade",
            "back_up",
            "recover",
            "drain",
            "get_amqp_login",
        ] {
            let mut all = READING.iter().chain(&CHANGING);
            let found = all.find(|uri| uri.contains(word) && !uri.contains("restart_worker"));
            assert_eq!(found, None, "{word}");
        }
    }
}
