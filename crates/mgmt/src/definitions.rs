//! Definitions: exported, and imported.

use std::sync::Arc;

use crosstie_metadata::{Refusal, RefusalKind};
use serde_json::{Value as Json, json};

use crate::answer::Answer;
use crate::call::{Api, Call};
use crate::form::{self, Form};

pub(crate) fn export(call: &Call<'_>, vhost: Option<&str>) -> Answer {
    let operators = &call.api.operators;
    let exported = match vhost {
        None => operators.export(),
        Some(name) => match operators.export_vhost(name) {
            Ok(exported) => exported,
            Err(_) => return Answer::bad_request("vhost_not_found"),
        },
    };
    let answer = Answer::json(&exported);
    match call.query.get("download").filter(|name| !name.is_empty()) {
        Some(name) => {
            let is_safe = |c: &char| !c.is_control() && !matches!(c, '"' | '\\') && c.is_ascii();
            let name: String = name.chars().filter(is_safe).collect();
            let value = format!("attachment; filename={name}");
            answer.header("content-disposition", &value)
        }
        None => answer,
    }
}

/// Imports the body: JSON, or a form with a file. The answer and the log list the parts that are left out.
pub(crate) async fn import(
    call: &Call<'_>,
    vhost: Option<&str>,
    body: &[u8],
) -> Result<Answer, Answer> {
    let kind = call
        .head
        .headers
        .content_type
        .as_deref()
        .unwrap_or_default();
    let boundary = form::boundary(kind).map(str::to_owned);
    let vhost = vhost.map(str::to_owned);
    let stopping = || {
        refused(&Refusal::new(
            RefusalKind::NotStored,
            "the router is stopping",
        ))
    };
    // One at a time: what is made of a body is a multiple of it. The thread keeps the permit if the client goes.
    let permit = Arc::clone(&call.api.importing).acquire_owned().await;
    let permit = permit.map_err(|_| stopping())?;
    let (api, body) = (Arc::clone(call.api), body.to_vec());
    let import = move || {
        let _permit = permit;
        imported(&api, &body, boundary.as_deref(), vhost.as_deref())
    };
    let done = tokio::task::spawn_blocking(import).await;
    let (skipped, page) = done.map_err(|_| stopping())??;
    tracing::info!("user '{}' has imported definitions", call.caller.name());
    if let Some(page) = page {
        return Ok(Answer::empty(303).header("location", &page));
    }
    Ok(match skipped.is_empty() {
        true => Answer::no_content(),
        false => Answer::json(&json!({"skipped": skipped})),
    })
}

/// Imports on a thread that may wait. Returns the parts that are left out, and the page that a form asks for.
fn imported(
    api: &Api,
    body: &[u8],
    boundary: Option<&str>,
    vhost: Option<&str>,
) -> Result<(Vec<Json>, Option<String>), Answer> {
    let (json, page) = match boundary {
        None => (body, None),
        Some(boundary) => {
            let form = Form::parse(body, boundary);
            let part = |name| form.as_ref().and_then(|form| form.get(name));
            let file = part("file").ok_or_else(|| Answer::bad_request("file_not_found"))?;
            (file, part("redirect").map(own_page).transpose()?)
        }
    };
    let json = match json.trim_ascii() {
        b"" => b"{}",
        json => json,
    };
    let skipped = api.operators.import(json, vhost, false);
    let skipped = skipped.map_err(|refusal| refused(&refusal))?.into_iter();
    let skipped = skipped.map(|skipped| {
        tracing::warn!("{skipped}");
        json!({"what": skipped.what, "reason": skipped.why})
    });
    Ok((skipped.collect(), page))
}

/// RabbitMQ escapes the texts of policies for a browser.
fn refused(refusal: &Refusal) -> Answer {
    let reason = refusal.to_string();
    if reason.starts_with("it is not JSON") {
        return Answer::bad_request("failed_to_parse_json");
    }
    let reason = reason.replace('<', "&lt;").replace('>', "&gt;");
    Answer::error(refusal.status(), refusal.error(), &reason)
}

/// A page of the site itself.
fn own_page(page: &[u8]) -> Result<String, Answer> {
    let page = std::str::from_utf8(page).ok().filter(|page| {
        let is_plain = page
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        is_plain && !page.starts_with("//") && !page.contains(':')
    });
    let foreign = || Answer::bad_request("redirect: expected a path of this site");
    page.map(str::to_owned).ok_or_else(foreign)
}
