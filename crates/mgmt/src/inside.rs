//! Readings for an operator at the node's own socket, who has every right.

use std::sync::Arc;

use crate::answer::{Answer, Body};
use crate::call::{Api, Call};
use crate::caller::Caller;
use crate::entry::found;
use crate::request::{Head, Query, Rows, segments};
use crate::table;

impl Api {
    /// The status and the body of a GET of `target`, a path below `/api` with its query. A list has the named rows only.
    pub async fn read(self: &Arc<Self>, target: &str, rows: Rows) -> (u16, Vec<u8>) {
        let answer = self.reading(target, rows).await;
        let answer = answer.unwrap_or_else(|answer| answer);
        let body = match answer.body {
            Body::Whole(bytes) => bytes,
            Body::Parts(parts) => parts.flatten().collect(),
        };
        (answer.status, body)
    }

    async fn reading(self: &Arc<Self>, target: &str, rows: Rows) -> Result<Answer, Answer> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = segments(&format!("/api/{path}")).ok_or_else(|| Answer::empty(400))?;
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let place = found(&names)?;
        let head = Head {
            method: "GET".to_owned(),
            ..Head::default()
        };
        if !place.takes(&head.method) {
            return Err(Answer::method_not_allowed(place.allowed()));
        }
        let caller = Caller::operator(self.operators.users());
        let mut query = Query::parse(query);
        query.rows = Some(rows);
        let call = Call {
            api: self,
            caller: &caller,
            query,
            head: &head,
        };
        Ok(table::answer(&call, &place, b"").await)
    }
}
