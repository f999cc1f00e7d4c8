//! The effect of an accepted request: a call, a publication, an event.

use std::sync::Arc;

use bytes::Bytes;
use crosstie_realms::resident::{Failed, Place, Resident};
use crosstie_wamp::codec::Limits;
use crosstie_wamp::{Payload, PublishOptions, Serializer};
use crosstie_web::bridge::{Refusal, answer, body, trace, webhook};
use hyper::{HeaderMap, StatusCode};

use crate::request_counts::Outcome;

/// The kind of a service.
pub(super) enum Kind {
    Caller,
    Publisher,
    Webhook {
        topic: String,
        success_response: Bytes,
        error_response: Bytes,
    },
}

/// The answer to the request.
pub(super) struct Said {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
    pub(super) outcome: Outcome,
}

impl Kind {
    /// The label in its metrics.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Publisher => "publisher",
            Self::Webhook { .. } => "webhook",
        }
    }
}

impl Said {
    pub(super) fn answered(status: StatusCode, body: Bytes) -> Self {
        Self {
            status,
            body,
            outcome: Outcome::Answered,
        }
    }
}

/// Executes a request in its realm.
pub(super) async fn say(
    kind: &Kind,
    place: &Place,
    limits: &Limits,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Said, Refusal> {
    match kind {
        Kind::Caller => call(place, limits, headers, body).await,
        Kind::Publisher => publish(place, limits, headers, body).await,
        Kind::Webhook {
            topic,
            success_response,
            error_response,
        } => {
            let text = std::str::from_utf8(body).map_err(|_| Refusal::NotUtf8)?;
            Ok(match publish_event(place, topic, headers, text).await {
                Ok(()) => Said::answered(StatusCode::ACCEPTED, success_response.clone()),
                Err(failed) => {
                    tracing::warn!(
                        "A request could not be published to '{topic}' of realm '{}' with role '{}': {failed}",
                        place.realm(),
                        place.role()
                    );
                    Said {
                        status: StatusCode::INTERNAL_SERVER_ERROR,
                        body: error_response.clone(),
                        outcome: outcome(&failed),
                    }
                }
            })
        }
    }
}

async fn call(
    place: &Place,
    limits: &Limits,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Said, Refusal> {
    let mut call = body::call(body, limits)?;
    trace::add(headers, &mut call.options.passthru);
    let resident = match place.resident() {
        Ok(resident) => resident,
        Err(failed) => return Ok(failure(place, failed)),
    };
    let called = resident.call(&call.procedure, call.options, call.payload);
    Ok(match called.await {
        Ok(result) => match answer::result(&result.args, &result.kwargs) {
            Some(body) => ok(body),
            None => failure(place, Failed::Lost("its result is not a list".to_owned())),
        },
        Err(failed) => failure(place, failed),
    })
}

async fn publish(
    place: &Place,
    limits: &Limits,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Said, Refusal> {
    let mut publication = body::publication(body, limits)?;
    trace::add(headers, &mut publication.options.passthru);
    let resident = match place.resident() {
        Ok(resident) => resident,
        Err(failed) => return Ok(failure(place, failed)),
    };
    let published = acknowledged(
        &resident,
        &publication.topic,
        publication.options,
        publication.payload,
    );
    Ok(match published.await {
        Ok(id) => ok(answer::published(id)),
        Err(failed) => failure(place, failed),
    })
}

async fn publish_event(
    place: &Place,
    topic: &str,
    headers: &HeaderMap,
    text: &str,
) -> Result<(), Failed> {
    let arguments = webhook::arguments(headers, text);
    let mut options = PublishOptions::acknowledged();
    trace::add(headers, &mut options.passthru);
    let payload = Payload::new(Serializer::Json, &arguments, &[]);
    let resident = place.resident()?;
    acknowledged(&resident, topic, options, payload).await?;
    Ok(())
}

async fn acknowledged(
    resident: &Arc<Resident>,
    topic: &str,
    options: PublishOptions,
    payload: Payload<'_>,
) -> Result<crosstie_wamp::PublicationId, Failed> {
    let published = resident.publish(topic, options, payload).await?;
    published.ok_or_else(|| Failed::Lost("the publication was not acknowledged".to_owned()))
}

fn ok(body: Vec<u8>) -> Said {
    Said::answered(StatusCode::OK, body.into())
}

fn outcome(failed: &Failed) -> Outcome {
    match failed {
        Failed::Error { .. } => Outcome::Error,
        Failed::NotLetIn(_) | Failed::Lost(_) => Outcome::Unavailable,
    }
}

/// A WAMP error is a valid answer; anything else is an internal failure.
fn failure(place: &Place, failed: Failed) -> Said {
    let outcome = outcome(&failed);
    let (status, body) = match failed {
        Failed::Error { uri, payload } => (
            StatusCode::OK,
            answer::error(&uri, &payload.args, &payload.kwargs).into(),
        ),
        other => {
            tracing::warn!(
                "A request could not be forwarded to realm '{}' with role '{}': {other}",
                place.realm(),
                place.role()
            );
            (StatusCode::INTERNAL_SERVER_ERROR, answer::failure().into())
        }
    };
    Said {
        status,
        body,
        outcome,
    }
}
