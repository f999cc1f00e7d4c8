//! Functions that the node hosts, asked again while they are not there: their host starts beside the listeners, and is
//! started again where it ended, so that a client may come before it.

use std::sync::Arc;
use std::time::Duration;

use crosstie_auth::wamp::{Answer, Call, Unanswered};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::router_state::RouterState;
use crate::wamp::elsewhere::{Outcome, Slot};

/// The first pause; each is twice as long as the one before, so that many who wait ask little.
const PAUSE: Duration = Duration::from_millis(100);

/// What a realm answers in the place of a procedure.
const ABSENT: &str = "wamp.error.no_such_procedure";

/// A call that is under way. Whoever drops it does not wait for it any more.
pub(super) struct Asking(JoinHandle<()>);

/// Calls a function that says who others are. What it says, or that it says nothing in time, will be in `slot`.
pub(super) fn call(state: &Arc<RouterState>, call: Call, slot: &Arc<Slot>) -> Asking {
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

/// The last that is said before the time is over.
async fn answer(state: &RouterState, call: &Call) -> Answer {
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

async fn ask(state: &RouterState, call: &Call) -> Answer {
    let (tell, told) = oneshot::channel();
    let then = move |answer| {
        // Nobody may wait for it any more.
        let _ = tell.send(answer);
    };
    // Dropped with the answer, or with whoever waits for it.
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
