//! Calls to functions that the node hosts, with retries while they are absent. Their host starts beside the listeners
//! and restarts after a failure, so that a client may come first.

use std::sync::Arc;
use std::time::Duration;

use crosstie_auth::wamp::{Answer, Call, Unanswered};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::elsewhere::{Outcome, Slot};
use crate::realms::Realms;

/// The first pause; each further one is twice as long, so that many waiting clients cause few calls.
const PAUSE: Duration = Duration::from_millis(100);

/// A realm's error for an absent procedure.
const ABSENT: &str = "wamp.error.no_such_procedure";

/// A call in progress. Dropping it cancels the wait.
pub(super) struct Asking(JoinHandle<()>);

/// Calls an authenticator function. `slot` gets its answer, or the timeout.
pub(crate) fn call(state: &Arc<Realms>, call: Call, slot: &Arc<Slot>) -> Asking {
    let slot = Arc::downgrade(slot);
    let keeper = state.door.keeper().clone();
    let state = Arc::clone(state);
    Asking(keeper.spawn(async move {
        let answer = answer(&state, &call).await;
        if let Some(slot) = slot.upgrade() {
            slot.fill(Outcome::Answer(answer));
        }
    }))
}

/// The last answer within the time limit.
async fn answer(state: &Realms, call: &Call) -> Answer {
    let timeout = call.authenticator.timeout;
    let deadline = Instant::now() + timeout;
    let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    let mut last = Answer::Unanswered(Unanswered::Timeout { timeout_ms });
    let mut pause = PAUSE;
    while let Ok(answer) = timeout_at(deadline, ask(state, call)).await {
        let is_last = !is_absent(&answer) || Instant::now() + pause >= deadline;
        last = answer;
        if is_last {
            break;
        }
        sleep(pause).await;
        pause *= 2;
    }
    last
}

async fn ask(state: &Realms, call: &Call) -> Answer {
    let (tell, told) = oneshot::channel();
    let then = move |answer| {
        // The waiting task may be gone.
        let _ = tell.send(answer);
    };
    // Dropped with the answer, or with the waiting task.
    let _asked = match state.authenticators.call_then(state, call, then) {
        Ok(asked) => asked,
        Err(unanswered) => return Answer::Unanswered(unanswered),
    };
    told.await.unwrap_or_else(|_| {
        let text = "it was not answered".to_owned();
        Answer::Unanswered(Unanswered::Lost { text })
    })
}

fn is_absent(answer: &Answer) -> bool {
    matches!(answer, Answer::Error { uri, .. } if uri == ABSENT)
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.abort();
    }
}
