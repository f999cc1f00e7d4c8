//! Procedures of components beside a router. A container's process itself offers those for its components, such as
//! `start_component`.

use crosstie_client::args;
use crosstie_config::{Component, Json};
use serde_json::json;
use tracing::info;

use super::router::router;
use super::{Deferred, Procedure, later, now};
use crate::management::errors::{self, Refusal};
use crate::management::request::{Answer, Call, Reply};
use crate::node::Node;
use crate::workers::Wanted;
use crate::workers::hosted::{Hosted, HostedState, NotStarted};
use crate::workers::process::Phase;
use crate::workers::router::DEFAULT_ROLE;

pub(super) static PROCEDURES: [Procedure; 4] = [
    now("crossbar.worker..get_router_components", components),
    now("crossbar.worker..get_router_component", component),
    later("crossbar.worker..start_router_component", start_component),
    later("crossbar.worker..stop_router_component", stop_component),
];

fn components(node: &mut Node, call: &Call) -> Answer {
    let ids = hosted(node, call)?.iter();
    Ok(ids.map(|hosted| hosted.component.id.clone()).collect())
}

fn component(node: &mut Node, call: &Call) -> Answer {
    let id: String = call.required(0, "component_id")?;
    let mut all = hosted(node, call)?.iter();
    let hosted = all.find(|hosted| hosted.component.id == id);
    let hosted = hosted.ok_or_else(|| no_such_component(&id))?;
    let (status, error) = hosted.condition();
    Ok(json!({
        "id": id,
        "realm": hosted.component.realm,
        "role": hosted.component.role,
        "status": status,
        "error": error,
    }))
}

fn start_component(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let component = || {
        let id: String = call.required(0, "component_id")?;
        let definition: Json = call.required(1, "config")?;
        if node.is_ending() {
            return Err(errors::ending());
        }
        let there = hosted(node, call)?.iter();
        let mut there = there.filter(|hosted| hosted.component.id == id);
        if there.any(Hosted::is_there) {
            let text = format!("a component '{id}' runs already");
            return Err(errors::already_running(&text));
        }
        let mut component = crosstie_config::component_from_json(&definition, true)
            .map_err(|problems| errors::invalid_configuration(&problems))?;
        component.id = id;
        check_place(node, call, &component)?;
        Ok(component)
    };
    let component = match component() {
        Ok(component) => component,
        Err(error) => return Err((reply, error)),
    };
    let worker = call.worker.as_str();
    let Some(running) = node.worker_mut(worker) else {
        return Err((reply, super::workers::no_such_worker(worker)));
    };
    if running.wanted == Wanted::Stop {
        let text = format!("worker '{worker}' is being stopped");
        return Err((reply, errors::not_running(&text)));
    }
    // A component that has failed or left makes room.
    running
        .components
        .retain(|old| old.component.id != component.id);
    let mut hosted = Hosted::new(component);
    hosted.starting.push(reply);
    running.components.push(hosted);
    match running.process.as_ref().map(|process| process.phase()) {
        Some(Phase::Started) => node.start_waiting_components(worker),
        // Requested when the host is ready, or reported when the host has ended.
        Some(Phase::Starting | Phase::Restarting | Phase::Stopping) => {}
        _ => node.start_process(worker),
    }
    Ok(())
}

fn stop_component(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let id: String = match call.required(0, "component_id") {
        Ok(id) => id,
        Err(error) => return Err((reply, error)),
    };
    if let Err(error) = router(node, call) {
        return Err((reply, error));
    }
    let worker = call.worker.clone();
    let client = node.management.as_ref().map(|realm| realm.client.clone());
    let (Some(running), Some(client)) = (node.worker_mut(&worker), client) else {
        return Err((reply, super::workers::no_such_worker(&worker)));
    };
    let mut all = running.components.iter();
    let Some(at) = all.position(|hosted| hosted.component.id == id) else {
        return Err((reply, no_such_component(&id)));
    };
    let mut hosted = running.components.remove(at);
    let was_there = hosted.state == HostedState::Started;
    hosted.handle_started(&worker, Err(NotStarted::new("it was stopped".to_owned())));
    let details = json!({"id": id});
    node.tell_of_router(&worker, "component_stopped", details.clone());
    tokio::spawn(async move {
        let procedure = format!("crossbar.worker.{worker}.stop_component");
        let stopped = client.call(&procedure, args![id.as_str()]).await;
        // The caller may have gone.
        let _ = match stopped {
            // A component that had failed or left cannot be stopped.
            Err(error) if was_there => reply.send(Err(errors::not_running(&error.to_string()))),
            _ => {
                info!("Router '{worker}': component '{id}' stopped");
                reply.send(Ok(details))
            }
        };
    });
    Ok(())
}

/// Checks that the router has the component's realm and role: otherwise its session would be refused forever.
fn check_place(node: &Node, call: &Call, component: &Component) -> Result<(), Refusal> {
    let router = router(node, call)?;
    let name = component.realm.as_str();
    let Some(realm) = router.realms.iter().find(|realm| realm.name == name) else {
        let text = format!("there is no realm named '{name}' for the component to join");
        return Err(errors::no_such_object(&text));
    };
    let role = component.role.as_deref().unwrap_or(DEFAULT_ROLE);
    if !realm.roles.iter().any(|own| own.name == role) {
        let text = format!("there is no role named '{role}' in realm '{name}' for the component");
        return Err(errors::no_such_object(&text));
    }
    Ok(())
}

/// The components of a router worker.
fn hosted<'a>(node: &'a Node, call: &Call) -> Result<&'a [Hosted], Refusal> {
    router(node, call)?;
    let worker = node.worker(&call.worker);
    Ok(worker.map_or(&[], |worker| worker.components.as_slice()))
}

fn no_such_component(id: &str) -> Refusal {
    errors::no_such_object(&format!("there is no component '{id}'"))
}
