//! Events as HTTP requests, like Crossbar.io's `MessageForwarder`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use crosstie_config::Forwarding;
use crosstie_realms::resident::{Event, Kept, Resident, Subscription};
use crosstie_site::request_counts::Outcome;
use crosstie_wamp::SubscribeOptions;
use crosstie_web::bridge::trace;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request};
use tokio::task::JoinSet;

use super::Bridge;

/// Forwards events until the router ends.
pub(super) async fn run(
    bridge: &Arc<Bridge>,
    subscriptions: &[Forwarding],
    method: &str,
    expected_code: Option<u16>,
) {
    let Ok(method) = Method::from_bytes(method.as_bytes()) else {
        return bridge.warn(&"its method is none of HTTP");
    };
    loop {
        let resident = bridge.place.awaited().await;
        let mut forwarding = JoinSet::new();
        for subscription in subscriptions {
            match subscribe(&resident, subscription).await {
                Ok(events) => {
                    let way = Way {
                        bridge: Arc::clone(bridge),
                        url: subscription.url.clone(),
                        method: method.clone(),
                        expected_code,
                        is_failing: Arc::default(),
                    };
                    forwarding.spawn(forward(way, events));
                }
                Err(e) => bridge.warn(&format!(
                    "cannot subscribe to '{}': {e}",
                    subscription.topic
                )),
            }
        }
        while forwarding.join_next().await.is_some() {}
        // A subscription has ended or failed: the next session tries again.
        resident.over().await;
    }
}

async fn subscribe(
    resident: &Arc<Resident>,
    subscription: &Forwarding,
) -> Result<Subscription, crosstie_realms::resident::Failed> {
    let options = SubscribeOptions::matching(subscription.match_policy);
    resident.subscribe(&subscription.topic, options).await
}

/// The destination of a subscription's events.
#[derive(Clone)]
struct Way {
    bridge: Arc<Bridge>,
    url: String,
    method: Method,
    expected_code: Option<u16>,
    /// The last event was not delivered: logged once, until one is.
    is_failing: Arc<AtomicBool>,
}

async fn forward(way: Way, mut events: Subscription) {
    let mut sending = JoinSet::new();
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            Some(_) = sending.join_next(), if !sending.is_empty() => continue,
        };
        let Some(event) = event else {
            break;
        };
        // The semaphore is never closed.
        let Ok(turn) = Arc::clone(&way.bridge.requests).acquire_owned().await else {
            return;
        };
        let way = way.clone();
        sending.spawn(async move {
            way.send(&event).await;
            drop(turn);
        });
    }
    while sending.join_next().await.is_some() {}
}

impl Way {
    async fn send(&self, event: &Event) {
        match self.request(event).await {
            Ok(()) => self.is_failing.store(false, Ordering::Relaxed),
            Err(e) if !self.is_failing.swap(true, Ordering::Relaxed) => {
                self.bridge
                    .warn(&format!("an event was not taken by {}: {e}", self.url));
            }
            Err(_) => {}
        }
    }

    async fn request(&self, event: &Event) -> Result<(), String> {
        let mut request = Request::new(body(&event.payload));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.url.parse().map_err(|e| format!("no URL: {e}"))?;
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json);
        trace::set(event.passthru.as_deref(), request.headers_mut());
        let (answer, counted) = self.bridge.ask(request).await?;
        let status = answer.status.as_u16();
        match self.expected_code {
            Some(expected) if expected != status => {
                counted.end(Outcome::Unexpected);
                Err(format!(
                    "it was answered {status}, where {expected} was expected"
                ))
            }
            _ => {
                counted.end(Outcome::Answered);
                Ok(())
            }
        }
    }
}

fn body(payload: &Kept) -> Bytes {
    let or = |part: &Bytes, empty: &'static [u8]| match part.is_empty() {
        true => Bytes::from_static(empty),
        false => part.clone(),
    };
    let (args, kwargs) = (or(&payload.args, b"[]"), or(&payload.kwargs, b"{}"));
    let parts: [&[u8]; 5] = [b"{\"args\":", &args, b",\"kwargs\":", &kwargs, b"}"];
    parts.concat().into()
}
