//! Joints: a WAMP procedure as a target of oslo.messaging, and the reverse; a WAMP topic as an AMQP exchange, and the
//! reverse.
//!
//! ```text
//!   realm ─► wamp::resident ─► a joint's task ─► bond ─► socket ─► amqp::resident ─► vhost
//!         ◄─                 ◄─                ◄─ incoming ◄─ socket ◄─             ◄─
//! ```
//!
//! To its realm a joint is a session, to its vhost a connection, with the permissions, limits and flow control of any.
//! `crosstie_joints` translates between the messages of both sides. A joint is a task that restarts when one of its
//! ends is lost: unfinished messages are then back in their queues, and callers that wait for an answer get an error.

mod bond;
mod course;
mod deliveries;
mod exchange;
mod procedure;
mod properties;
mod setting;
mod target;
mod topic;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_config::{self as model, JointKind};

use crate::error::{StartError, StartFault, StopError};
use crate::joint_counts::Count;
use crate::joint_state::{JointState, JointStatus};
use crate::router::Router;
use setting::Setting;

/// Pause before a restart: the first, and the longest.
const WAIT_MIN: Duration = Duration::from_millis(250);
const WAIT_MAX: Duration = Duration::from_secs(30);

impl Router {
    /// Starts a joint, after AMQP. It connects as soon as its realm, its role and its parts of the vhost exist.
    pub fn start_joint(&self, joint: &model::Joint) -> Result<(), StartError> {
        let what = || self.of_worker("joint", &joint.id);
        self.check_runs(what)?;
        let failed = |fault| StartError {
            what: what(),
            fault,
        };
        if self.state.amqp().is_none() {
            return Err(failed(StartFault::NoSuch("AMQP".to_owned())));
        }
        let runtime = self.workers.aside_handle();
        let runtime = runtime.map_err(|e| failed(StartFault::Io(e)))?;
        let joint = JointState::new(joint.clone());
        if !self.state.add_joint(Arc::clone(&joint)) {
            return Err(failed(StartFault::AlreadyRunning));
        }
        let setting = Setting::new(&self.state, joint, runtime.clone());
        runtime.spawn(keep(setting));
        Ok(())
    }

    /// Stops a joint: it leaves its realm and its vhost. Unfinished messages are back in their queues, and callers that
    /// wait for an answer get an error.
    pub fn stop_joint(&self, id: &str) -> Result<(), StopError> {
        let joint = self.state.take_joint(id);
        let joint = joint.ok_or_else(|| StopError {
            what: self.of_worker("joint", id),
        })?;
        joint.stop();
        Ok(())
    }

    /// The joints, in the order of their starts.
    pub fn joints(&self) -> Vec<JointStatus> {
        let joints = self.state.joints();
        joints.iter().map(|joint| joint.status()).collect()
    }
}

/// Keeps a joint running until it is stopped, or its router ends.
async fn keep(setting: Arc<Setting>) {
    tokio::select! {
        () = keep_beginning(&setting) => {}
        () = setting.known.stopped() => {}
    }
    // Its connection ended with the future; calls that are still being answered would keep its session.
    setting.place.leave("the joint was stopped");
}

async fn keep_beginning(setting: &Arc<Setting>) {
    let mut wait = WAIT_MIN;
    loop {
        let begun = Instant::now();
        let Err(why) = run(setting).await;
        if setting.state.bounds.is_stopping() {
            return;
        }
        if begun.elapsed() > WAIT_MAX {
            wait = WAIT_MIN;
        }
        setting.counts.count(Count::Restarts);
        setting.known.note_trouble(&why);
        tracing::warn!(
            "Joint '{}' restarts in {} ms: {why}",
            setting.joint.id,
            wait.as_millis()
        );
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
}

/// Runs a joint until one of its ends is lost. Returns the reason.
async fn run(setting: &Arc<Setting>) -> Result<Infallible, String> {
    match &setting.joint.kind {
        JointKind::ProcedureToTarget(joint) => procedure::run(setting, joint).await,
        JointKind::TargetToProcedure(joint) => target::run(setting, joint).await,
        JointKind::TopicToExchange(joint) => topic::run(setting, joint).await,
        JointKind::ExchangeToTopic(joint) => exchange::run(setting, joint).await,
        _ => Err("a joint of a kind that this router does not know".to_owned()),
    }
}
