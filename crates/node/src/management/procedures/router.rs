//! Procedures of router workers: realms, roles, transports, links and joints, started and stopped while it runs.

use crosstie_config::{JointKind, Json, RLinkEndpoint};
use crosstie_router::{
    JointStatus, RLinkStatus, RealmStatus, RoleStatus, StartError, StartFault, TransportStatus,
};
use serde_json::json;
use tracing::info;

use super::workers::no_such_worker;
use super::{Procedure, date, now};
use crate::management::errors::{self, Refusal};
use crate::management::request::{Answer, Call};
use crate::node::Node;
use crate::workers::router::{RunningRealm, RunningRouter};

pub(super) static PROCEDURES: [Procedure; 20] = [
    now("crossbar.worker..get_router_realms", realms),
    now("crossbar.worker..get_router_realm", realm),
    now("crossbar.worker..start_router_realm", start_realm),
    now("crossbar.worker..stop_router_realm", stop_realm),
    now("crossbar.worker..get_router_realm_roles", roles),
    now("crossbar.worker..get_router_realm_role", role),
    now("crossbar.worker..start_router_realm_role", start_role),
    now("crossbar.worker..stop_router_realm_role", stop_role),
    now("crossbar.worker..get_router_transports", transports),
    now("crossbar.worker..get_router_transport", transport),
    now("crossbar.worker..start_router_transport", start_transport),
    now("crossbar.worker..stop_router_transport", stop_transport),
    now("crossbar.worker..get_router_realm_links", links),
    now("crossbar.worker..get_router_realm_link", link),
    now("crossbar.worker..start_router_realm_link", start_link),
    now("crossbar.worker..stop_router_realm_link", stop_link),
    now("crossbar.worker..get_router_joints", joints),
    now("crossbar.worker..get_router_joint", joint),
    now("crossbar.worker..start_router_joint", start_joint),
    now("crossbar.worker..stop_router_joint", stop_joint),
];

fn realms(node: &mut Node, call: &Call) -> Answer {
    let router = router(node, call)?;
    Ok(router.realms.iter().map(|realm| realm.id.clone()).collect())
}

fn realm(node: &mut Node, call: &Call) -> Answer {
    let router = router(node, call)?;
    let realm = named_realm(router, call)?;
    let name = &realm.name;
    let status = router.router.realms().into_iter();
    let status = status.into_iter().find(|status| status.name == *name);
    let status = status.ok_or_else(|| no_such_realm(&realm.id))?;
    Ok(about_realm(realm, &status))
}

fn start_realm(node: &mut Node, call: &Call) -> Answer {
    let id: String = call.required(0, "realm_id")?;
    let definition: Json = call.required(1, "realm_config")?;
    let realm = crosstie_config::realm_from_json(&definition)
        .map_err(|problems| errors::invalid_configuration(&problems))?;
    let worker = call.worker.as_str();
    let router = starting_router(node, call)?;
    if router.realm(&id).is_some() {
        return Err(errors::already_running(&format!(
            "a realm '{id}' runs already"
        )));
    }
    router
        .start_realm(worker, &id, &realm)
        .and_then(|()| router.start_rlinks(worker, &realm))
        .map_err(start_failed)?;
    node.bridge_meta_apis(worker);
    let details = json!({"id": id, "name": realm.name});
    node.tell_of_router(worker, "realm_started", details.clone());
    Ok(details)
}

fn stop_realm(node: &mut Node, call: &Call) -> Answer {
    let worker = call.worker.as_str();
    let id = named_realm(router(node, call)?, call)?.id.clone();
    let router = router_mut(node, call)?;
    let at = router.realm(&id).ok_or_else(|| no_such_realm(&id))?;
    let realm = router.realms.remove(at);
    router.router.stop_rlinks(&realm.name);
    let stopped = router.router.stop_realm(&realm.name);
    stopped.map_err(|error| errors::no_such_object(&error.to_string()))?;
    info!(
        "Router '{worker}': realm '{id}' (named '{}') stopped",
        realm.name
    );
    let details = json!({"id": id, "name": realm.name});
    node.tell_of_router(worker, "realm_stopped", details.clone());
    Ok(details)
}

fn roles(node: &mut Node, call: &Call) -> Answer {
    let realm = named_realm(router(node, call)?, call)?;
    Ok(realm.roles.iter().map(|role| role.id.clone()).collect())
}

fn role(node: &mut Node, call: &Call) -> Answer {
    let router = router(node, call)?;
    let realm = named_realm(router, call)?;
    let id: String = call.required(1, "role_id")?;
    let mut roles = realm.roles.iter();
    let role = roles.find(|role| role.id == id || role.name == id);
    let role = role.ok_or_else(|| no_such_role(&id, &realm.id))?;
    let status = router.router.roles(&realm.name).unwrap_or_default();
    let status = status.iter().find(|status| status.role.name == role.name);
    let status = status.ok_or_else(|| no_such_role(&id, &realm.id))?;
    Ok(about_role(&role.id, status))
}

fn start_role(node: &mut Node, call: &Call) -> Answer {
    let id: String = call.required(1, "role_id")?;
    let definition: Json = call.required(2, "role_config")?;
    let role = crosstie_config::role_from_json(&definition)
        .map_err(|problems| errors::invalid_configuration(&problems))?;
    let worker = call.worker.as_str();
    let realm_id = named_realm(router(node, call)?, call)?.id.clone();
    let router = starting_router(node, call)?;
    let at = router
        .realm(&realm_id)
        .ok_or_else(|| no_such_realm(&realm_id))?;
    if router.realms[at].roles.iter().any(|role| role.id == id) {
        let text = format!("a role '{id}' runs already in realm '{realm_id}'");
        return Err(errors::already_running(&text));
    }
    router
        .start_role(worker, at, &id, &role)
        .map_err(start_failed)?;
    let details = json!({"id": id, "name": role.name, "realm": realm_id});
    node.tell_of_router(worker, "role_started", details.clone());
    Ok(details)
}

fn stop_role(node: &mut Node, call: &Call) -> Answer {
    let worker = call.worker.as_str();
    let id: String = call.required(1, "role_id")?;
    let realm_id = named_realm(router(node, call)?, call)?.id.clone();
    let router = router_mut(node, call)?;
    let at = router
        .realm(&realm_id)
        .ok_or_else(|| no_such_realm(&realm_id))?;
    let realm = &mut router.realms[at];
    let mut roles = realm.roles.iter();
    let role = roles.position(|role| role.id == id || role.name == id);
    let role = role.ok_or_else(|| no_such_role(&id, &realm_id))?;
    let role = realm.roles.remove(role);
    let stopped = router.router.stop_role(&realm.name, &role.name);
    stopped.map_err(|error| errors::no_such_object(&error.to_string()))?;
    info!(
        "Router '{worker}': role '{}' (named '{}') stopped on realm '{realm_id}'",
        role.id, role.name
    );
    let details = json!({"id": role.id, "name": role.name, "realm": realm_id});
    node.tell_of_router(worker, "role_stopped", details.clone());
    Ok(details)
}

fn transports(node: &mut Node, call: &Call) -> Answer {
    let transports = router(node, call)?.transports().into_iter();
    Ok(transports.map(|transport| transport.id).collect())
}

fn transport(node: &mut Node, call: &Call) -> Answer {
    let id: String = call.required(0, "transport_id")?;
    let transports = router(node, call)?.transports();
    let transport = transports.iter().find(|transport| transport.id == id);
    let transport = transport.ok_or_else(|| no_such_transport(&id))?;
    Ok(about_transport(transport))
}

fn start_transport(node: &mut Node, call: &Call) -> Answer {
    let id: String = call.required(0, "transport_id")?;
    let definition: Json = call.required(1, "transport_config")?;
    let mut transport = crosstie_config::transport_from_json(&definition)
        .map_err(|problems| errors::invalid_configuration(&problems))?;
    id.clone_into(&mut transport.id);
    let worker = call.worker.as_str();
    let router = starting_router(node, call)?;
    let urls = router
        .start_transport(worker, &transport)
        .map_err(start_failed)?;
    let details = json!({"id": id, "urls": urls});
    node.tell_of_router(worker, "transport_started", details.clone());
    Ok(details)
}

fn stop_transport(node: &mut Node, call: &Call) -> Answer {
    let worker = call.worker.as_str();
    let id: String = call.required(0, "transport_id")?;
    let router = router(node, call)?;
    // Transports for components beside the router cannot be stopped.
    if !router
        .transports()
        .iter()
        .any(|transport| transport.id == id)
    {
        return Err(no_such_transport(&id));
    }
    let stopped = router.router.stop_transport(&id);
    stopped.map_err(|error| errors::no_such_object(&error.to_string()))?;
    info!("Router '{worker}': transport '{id}' stopped");
    let details = json!({"id": id});
    node.tell_of_router(worker, "transport_stopped", details.clone());
    Ok(details)
}

fn links(node: &mut Node, call: &Call) -> Answer {
    let links = links_of(node, call)?.into_iter();
    Ok(links.map(|status| status.link.id).collect())
}

fn link(node: &mut Node, call: &Call) -> Answer {
    let id: String = call.required(1, "link_id")?;
    let mut links = links_of(node, call)?.into_iter();
    let status = links.find(|status| status.link.id == id);
    Ok(about_link(&status.ok_or_else(|| no_such_link(&id))?))
}

fn start_link(node: &mut Node, call: &Call) -> Answer {
    let id: String = call.required(1, "link_id")?;
    let definition: Json = call.required(2, "link_config")?;
    let link = crosstie_config::rlink_from_json(&id, &definition)
        .map_err(|problems| errors::invalid_configuration(&problems))?;
    let worker = call.worker.as_str();
    let realm = named_realm(router(node, call)?, call)?.name.clone();
    let started = starting_router(node, call)?.start_rlink(worker, &realm, &link);
    started.map_err(start_failed)?;
    let details = json!({"id": id, "realm": realm});
    node.tell_of_router(worker, "link_started", details.clone());
    Ok(details)
}

fn stop_link(node: &mut Node, call: &Call) -> Answer {
    let id: String = call.required(1, "link_id")?;
    let worker = call.worker.as_str();
    let realm = named_realm(router(node, call)?, call)?.name.clone();
    let stopped = router(node, call)?.router.stop_rlink(&realm, &id);
    stopped.map_err(|_| no_such_link(&id))?;
    info!("Router '{worker}': link '{id}' stopped on realm '{realm}'");
    let details = json!({"id": id, "realm": realm});
    node.tell_of_router(worker, "link_stopped", details.clone());
    Ok(details)
}

fn links_of(node: &Node, call: &Call) -> Result<Vec<RLinkStatus>, Refusal> {
    let router = router(node, call)?;
    let realm = &named_realm(router, call)?.name;
    let mut links = router.router.rlinks();
    links.retain(|status| status.realm == *realm);
    Ok(links)
}

fn joints(node: &mut Node, call: &Call) -> Answer {
    let joints = router(node, call)?.router.joints().into_iter();
    Ok(joints.map(|status| status.joint.id).collect())
}

fn joint(node: &mut Node, call: &Call) -> Answer {
    let id: String = call.required(0, "joint_id")?;
    let mut joints = router(node, call)?.router.joints().into_iter();
    let status = joints.find(|status| status.joint.id == id);
    Ok(about_joint(&status.ok_or_else(|| no_such_joint(&id))?))
}

fn start_joint(node: &mut Node, call: &Call) -> Answer {
    let id: String = call.required(0, "joint_id")?;
    let definition: Json = call.required(1, "joint_config")?;
    let invalid = |problems: &str| errors::invalid_configuration(problems);
    let joint = crosstie_config::joint_from_json(&id, &definition)
        .map_err(|problems| invalid(&problems))?;
    let worker = call.worker.as_str();
    let router = starting_router(node, call)?;
    let running = router.router.joints().into_iter();
    let mut beside: Vec<_> = running.map(|status| status.joint).collect();
    if beside.iter().all(|other| other.id != id) {
        beside.push(joint.clone());
        if let Some(why) = crosstie_config::joints_in_a_circle(&beside) {
            return Err(invalid(&why));
        }
    }
    router.start_joint(worker, &joint).map_err(start_failed)?;
    let details = json!({"id": id, "realm": joint.realm, "vhost": joint.vhost});
    node.tell_of_router(worker, "joint_started", details.clone());
    Ok(details)
}

fn stop_joint(node: &mut Node, call: &Call) -> Answer {
    let id: String = call.required(0, "joint_id")?;
    let worker = call.worker.as_str();
    let stopped = router(node, call)?.router.stop_joint(&id);
    stopped.map_err(|_| no_such_joint(&id))?;
    info!("Router '{worker}': joint '{id}' stopped");
    let details = json!({"id": id});
    node.tell_of_router(worker, "joint_stopped", details.clone());
    Ok(details)
}

fn about_realm(realm: &RunningRealm, status: &RealmStatus) -> Json {
    let roles: Vec<_> = realm.roles.iter().map(|role| role.id.as_str()).collect();
    json!({
        "id": realm.id,
        "name": status.name,
        "started": date(status.started),
        "sessions": status.sessions,
        "subscriptions": status.subscriptions,
        "registrations": status.registrations,
        "calls": status.calls,
        "roles": roles,
    })
}

fn about_role(id: &str, status: &RoleStatus) -> Json {
    json!({
        "id": id,
        "name": status.role.name,
        "started": date(status.started),
        "sessions": status.sessions,
    })
}

fn about_transport(transport: &TransportStatus) -> Json {
    json!({
        "id": transport.id,
        "type": transport.kind,
        "urls": transport.urls,
        "pages": transport.pages,
        "connections": transport.connections,
        "started": date(transport.started),
    })
}

/// The link's description without its secrets.
fn about_link(status: &RLinkStatus) -> Json {
    let link = &status.link;
    let to = match &link.transport.endpoint {
        RLinkEndpoint::Unix { path } => path.clone(),
        RLinkEndpoint::Tcp { host, port, .. } => format!("{host}:{port}"),
    };
    let both = |[local, remote]: [usize; 2]| json!({"local": local, "remote": remote});
    json!({
        "id": link.id,
        "started": date(status.started),
        "connected": status.is_connected,
        "trouble": status.trouble,
        "config": {
            "realm": link.realm,
            "transport": {"endpoint": to},
            "authid": link.authid,
            "authmethod": link.auth.method(),
            "exclude_authid": link.exclude_authid,
            "forward_local_events": link.forward_local_events,
            "forward_remote_events": link.forward_remote_events,
            "forward_local_invocations": link.forward_local_invocations,
            "forward_remote_invocations": link.forward_remote_invocations,
        },
        "subscriptions": both(status.topics),
        "registrations": both(status.procedures),
        "calls": both(status.calls),
        "queued_bytes": status.queued_bytes,
    })
}

fn about_joint(status: &JointStatus) -> Json {
    let joint = &status.joint;
    let kind = match &joint.kind {
        JointKind::ProcedureToTarget(_) => "procedure-to-target",
        JointKind::TargetToProcedure(_) => "target-to-procedure",
        JointKind::TopicToExchange(_) => "topic-to-exchange",
        _ => "exchange-to-topic",
    };
    json!({
        "id": joint.id,
        "type": kind,
        "realm": joint.realm,
        "role": joint.role,
        "vhost": joint.vhost,
        "user": joint.user,
        "started": date(status.started),
        "connected": status.is_there,
        "trouble": status.trouble,
        "passed": status.passed,
        "refused": status.refused,
        "dropped": status.dropped,
        "restarts": status.restarts,
    })
}

pub(super) fn router<'a>(node: &'a Node, call: &Call) -> Result<&'a RunningRouter, Refusal> {
    let id = call.worker.as_str();
    let worker = node.worker(id).ok_or_else(|| no_such_worker(id))?;
    worker
        .router
        .as_ref()
        .ok_or_else(|| no_router(id, worker.kind()))
}

pub(super) fn router_mut<'a>(
    node: &'a mut Node,
    call: &Call,
) -> Result<&'a mut RunningRouter, Refusal> {
    let id = call.worker.as_str();
    let worker = node.worker_mut(id).ok_or_else(|| no_such_worker(id))?;
    let kind = worker.kind();
    worker.router.as_mut().ok_or_else(|| no_router(id, kind))
}

/// A node that shuts down starts nothing any more.
fn starting_router<'a>(node: &'a mut Node, call: &Call) -> Result<&'a mut RunningRouter, Refusal> {
    match node.is_ending() {
        true => Err(errors::ending()),
        false => router_mut(node, call),
    }
}

fn no_router(id: &str, kind: &str) -> Refusal {
    errors::no_such_object(&format!("worker '{id}' is no router, but of type '{kind}'"))
}

/// Finds a realm by its id, or by its name.
fn named_realm<'a>(router: &'a RunningRouter, call: &Call) -> Result<&'a RunningRealm, Refusal> {
    let id: String = call.required(0, "realm_id")?;
    let mut realms = router.realms.iter();
    realms
        .find(|realm| realm.id == id || realm.name == id)
        .ok_or_else(|| no_such_realm(&id))
}

pub(super) fn no_such_realm(id: &str) -> Refusal {
    errors::no_such_object(&format!("there is no realm '{id}'"))
}

fn no_such_role(id: &str, realm: &str) -> Refusal {
    errors::no_such_object(&format!("there is no role '{id}' in realm '{realm}'"))
}

fn no_such_transport(id: &str) -> Refusal {
    errors::no_such_object(&format!("there is no transport '{id}'"))
}

fn no_such_joint(id: &str) -> Refusal {
    errors::no_such_object(&format!("there is no joint '{id}'"))
}

fn no_such_link(id: &str) -> Refusal {
    errors::no_such_object(&format!("there is no link '{id}'"))
}

fn start_failed(error: StartError) -> Refusal {
    let text = error.to_string();
    match error.fault {
        StartFault::AlreadyRunning => errors::already_running(&text),
        StartFault::NoSuch(_) => errors::no_such_object(&text),
        _ => errors::cannot_start(&text),
    }
}
