//! Removes a server from JetStream for good, and waits until the others have all that it had.

use std::path::Path;
use std::time::Duration;

use crosstie_jetstream::{Connection, Failed, Server as Address, Speaking, answer};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::names::{AUTHORITIES, SYSTEM, in_folder};
use super::plan::Plan;
use super::survey::{Survey, peer_id};
use super::verdict::{Moving, Way, is_member, way};
use crate::nats;

/// A removal as it is asked for.
pub(super) struct Removal<'r> {
    pub(super) directory: &'r Path,
    pub(super) plan: &'r Plan,
    pub(super) leaving: &'r str,
    /// A server that runs may be removed, too.
    pub(super) may_run: bool,
    pub(super) timeout: Duration,
}

/// Each server answers with its JetStream state.
const STATE: &str = "$SYS.REQ.SERVER.PING.JSZ";

/// Time for all servers to answer: nothing tells how many of them run.
const SURVEY_TIME: Duration = Duration::from_secs(2);

/// Maximum bytes of answers that wait here.
const ANSWERS_BYTES_MAX: usize = 64 << 20;

/// A removal is answered when a majority has stored it.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Pause between two surveys.
const PAUSE: Duration = Duration::from_millis(500);

const TOO_OLD: &str =
    "only servers from nats-server 2.15 on can move the streams of one that runs: stop it first";

impl Removal<'_> {
    /// An error inside is the reason why the server was not removed, or is not replaced yet.
    pub(super) async fn run(&self) -> anyhow::Result<Result<(), String>> {
        let speaking = self.speaking()?;
        let mut connection = self.dial(&speaking).await?;
        let earlier = survey(&connection).await?;
        let later = survey(&connection).await?;
        let way = match way(self.leaving, (&earlier, &later), self.may_run) {
            Ok(way) => way,
            Err(why) => return Ok(Err(why)),
        };
        let deadline = Instant::now() + self.timeout;
        let mut is_evacuated = way == Way::Remove;
        let mut moving = Moving::default();
        loop {
            let under_way = (&mut is_evacuated, &mut moving);
            let missing = match self.advance(&connection, way, under_way).await {
                Ok(missing) if missing.is_empty() => return Ok(Ok(())),
                Ok(missing) => missing.join("; "),
                Err(Failed::Nobody) if !is_evacuated => return Ok(Err(TOO_OLD.to_owned())),
                Err(failed) => failed.to_string(),
            };
            if Instant::now() > deadline {
                let leaving = self.leaving;
                return Ok(Err(format!(
                    "{leaving} is not replaced yet: {missing}; the command can be repeated"
                )));
            }
            if connection.has_ended() {
                connection = self.dial(&speaking).await?;
            }
            sleep(PAUSE).await;
        }
    }

    /// Asks for the next step, if one is due. Returns what is missing.
    async fn advance(
        &self,
        connection: &Connection,
        way: Way,
        (is_evacuated, moving): (&mut bool, &mut Moving),
    ) -> Result<Vec<String>, Failed> {
        if !*is_evacuated {
            self.ask(connection, "EVACUATE").await?;
            *is_evacuated = true;
        }
        let survey = survey(connection).await?;
        let mut missing = moving.missing(&survey, self.leaving);
        let is_due = way == Way::Remove || missing.is_empty();
        if is_due && is_member(&survey, self.leaving) {
            self.ask(connection, "REMOVE").await?;
            missing.push(format!("{} is being removed", self.leaving));
        }
        Ok(missing)
    }

    /// Asks the leader of all servers about the one that leaves.
    async fn ask(&self, connection: &Connection, what: &str) -> Result<(), Failed> {
        let subject = format!("$JS.API.SERVER.{what}");
        let question = json!({"peer": self.leaving, "peer_id": peer_id(self.leaving)}).to_string();
        let answer = connection.request(&subject, &[], question.as_bytes(), ANSWER_TIME);
        let answer = answer::decode(&answer.await?.payload).map_err(Failed::Answer)?;
        answer.map(drop).map_err(Failed::Refused)
    }

    fn speaking(&self) -> anyhow::Result<Speaking> {
        let folder = &self.plan.servers[0].name;
        let authorities = match self.plan.has_tls() {
            true => vec![in_folder(folder, AUTHORITIES)],
            false => Vec::new(),
        };
        Ok(Speaking::read(Some(SYSTEM), &authorities, self.directory)?)
    }

    async fn dial(&self, speaking: &Speaking) -> anyhow::Result<Connection> {
        let servers = self.plan.servers.iter().map(|server| {
            let address = Address {
                host: server.host.clone(),
                port: server.port,
                is_tls: self.plan.has_tls(),
            };
            (server.name.clone(), address)
        });
        nats::dial(servers, speaking).await
    }
}

/// The answers of all servers.
async fn survey(connection: &Connection) -> Result<Survey, Failed> {
    let question = json!({"accounts": true, "streams": true, "config": true}).to_string();
    let question = question.as_bytes();
    let mut answers = connection.ask_many(STATE, &[], question, ANSWERS_BYTES_MAX)?;
    let mut survey = Survey::default();
    let deadline = Instant::now() + SURVEY_TIME;
    while let Some(left) = deadline.checked_duration_since(Instant::now())
        && let Some(answer) = answers.next_within(left).await
    {
        if answer.status() == Some(503) {
            return Err(Failed::Nobody);
        }
        let answer = answer::decode(&answer.payload).map_err(Failed::Answer)?;
        survey.add(&answer.map_err(Failed::Refused)?);
    }
    Ok(survey)
}
