//! Requests of an operator in the node's management realm, who has every right.

use std::sync::Arc;

use crate::answer::{Answer, Body};
use crate::call::{Api, Call};
use crate::caller::Caller;
use crate::entry::found;
use crate::request::{Head, Query, Rows, segments};
use crate::table;

/// Half of the bytes that the controller's session may send in one message.
const ANSWER_BYTES_MAX: usize = 8 << 20;

impl Api {
    /// The status and the body of a GET of `target`, a path below `/api` with its query. A list has the named rows only.
    pub async fn read(self: &Arc<Self>, target: &str, rows: Rows) -> (u16, Vec<u8>) {
        told(self.asking("GET", target, Some(rows), b"").await)
    }

    /// The status and the body of another method with a body in JSON; an empty one counts as `{}`.
    pub async fn operate(
        self: &Arc<Self>,
        method: &str,
        target: &str,
        body: &[u8],
    ) -> (u16, Vec<u8>) {
        told(self.asking(method, target, None, body).await)
    }

    async fn asking(
        self: &Arc<Self>,
        method: &str,
        target: &str,
        rows: Option<Rows>,
        body: &[u8],
    ) -> Result<Answer, Answer> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = segments(&format!("/api/{path}")).ok_or_else(|| Answer::empty(400))?;
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let place = found(&names)?;
        let head = Head {
            method: method.to_owned(),
            ..Head::default()
        };
        if !place.takes(&head.method) {
            return Err(Answer::method_not_allowed(place.allowed()));
        }
        let caller = Caller::operator();
        let mut query = Query::parse(query);
        query.rows = rows;
        let call = Call {
            api: self,
            caller: &caller,
            query,
            head: &head,
            answer_bytes_max: ANSWER_BYTES_MAX,
        };
        Ok(table::answer(&call, &place, body).await)
    }
}

fn told(answer: Result<Answer, Answer>) -> (u16, Vec<u8>) {
    let answer = answer.unwrap_or_else(|answer| answer);
    let body = match answer.body {
        Body::Whole(bytes) => bytes,
        Body::Parts(parts) => parts.flatten().collect(),
    };
    (answer.status, body)
}
