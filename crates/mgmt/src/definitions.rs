//! Definitions: exported, and imported.

use std::sync::Arc;

use crosstie_metadata::{Refusal, RefusalKind};
use serde_json::{Value as Json, json};

use crate::answer::Answer;
use crate::call::Call;
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
    let (json, redirect) = match form::boundary(kind) {
        None => (body, None),
        Some(boundary) => {
            let form = Form::parse(body, boundary);
            let file = form.as_ref().and_then(|form| form.get("file"));
            let file = file.ok_or_else(|| Answer::bad_request("file_not_found"))?;
            (file, form.as_ref().and_then(|form| form.get("redirect")))
        }
    };
    let redirect = redirect.map(own_page).transpose()?;
    let json = match json.trim_ascii() {
        b"" => b"{}",
        json => json,
    };
    let skipped = imported(call, json.to_vec(), vhost.map(str::to_owned)).await;
    let skipped = skipped.map_err(|refusal| {
        // RabbitMQ escapes the texts of policies for a browser.
        let reason = refusal.to_string();
        let reason = reason.replace('<', "&lt;").replace('>', "&gt;");
        Answer::error(refusal.status(), refusal.error(), &reason)
    })?;
    if let Some(page) = redirect {
        return Ok(Answer::empty(303).header("location", &page));
    }
    Ok(match skipped.is_empty() {
        true => Answer::no_content(),
        false => Answer::json(&json!({"skipped": skipped})),
    })
}

/// Imports on a thread that may wait. Returns what is left out.
async fn imported(
    call: &Call<'_>,
    json: Vec<u8>,
    vhost: Option<String>,
) -> Result<Vec<Json>, Refusal> {
    let api = Arc::clone(call.api);
    let import = move || match serde_json::from_slice::<Json>(&json) {
        Ok(_) => api.operators.import(&json, vhost.as_deref(), false),
        Err(_) => Err(Refusal::new(RefusalKind::Invalid, "failed_to_parse_json")),
    };
    let done = tokio::task::spawn_blocking(import).await;
    let skipped = done.unwrap_or_else(|_| {
        let reason = "the router is stopping";
        Err(Refusal::new(RefusalKind::NotStored, reason))
    })?;
    tracing::info!("user '{}' has imported definitions", call.caller.name());
    let skipped = skipped.into_iter().map(|skipped| {
        tracing::warn!("{skipped}");
        json!({"what": skipped.what, "reason": skipped.why})
    });
    Ok(skipped.collect())
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
