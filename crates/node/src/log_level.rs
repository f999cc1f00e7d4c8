//! The level of the log, which an operator changes for a time, or until the node ends.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tracing::info;

use crate::management::errors::{self, Refusal};

/// The levels, from the quietest.
const LEVELS: [&str; 6] = ["none", "error", "warn", "info", "debug", "trace"];

const FOREIGN: &str = "the log is that of the program that the node is a part of";

/// A line with its number and its level.
pub type LogLine = (u64, &'static str, String);

/// Reads the last lines of the log: at most so many after the line of a number.
pub type ReadLog = fn(Option<u64>, usize) -> Vec<LogLine>;

/// The level of the process's log, and its last lines.
pub(crate) struct LogControl {
    /// `None` if the log is another program's.
    read: Option<ReadLog>,
    /// Changes the level by its name. `None` if the log is another program's.
    set: Option<fn(&str) -> bool>,
    /// The present level, which also the end of a change for a time sets.
    now: Arc<Mutex<String>>,
    /// The level after a change for a time.
    lasting: String,
    /// Ends the change for a time.
    ends: Option<JoinHandle<()>>,
}

impl LogControl {
    pub(crate) fn new(set: Option<fn(&str) -> bool>, read: Option<ReadLog>, level: &str) -> Self {
        Self {
            read,
            set,
            now: Arc::new(Mutex::new(level.to_owned())),
            lasting: level.to_owned(),
            ends: None,
        }
    }

    /// The last lines.
    pub(crate) fn lines(&self, after: Option<u64>, limit: usize) -> Result<Vec<LogLine>, Refusal> {
        let Some(read) = self.read else {
            return Err(errors::no_such_object(FOREIGN));
        };
        Ok(read(after, limit))
    }

    /// Changes the level, for a time if one is given. Returns the former level. Needs a tokio context.
    pub(crate) fn change(
        &mut self,
        level: &str,
        time: Option<Duration>,
    ) -> Result<String, Refusal> {
        let Some(set) = self.set else {
            return Err(errors::no_such_object(FOREIGN));
        };
        if rank(level).is_none() {
            let known = LEVELS.join(", ");
            return Err(errors::invalid_argument(&format!(
                "expected one of {known} as argument 0, 'level', got '{level}'"
            )));
        }
        if let Some(ends) = self.ends.take() {
            ends.abort();
        }
        let former = switch(set, &self.now, level, || match time {
            Some(time) => info!(
                "Log level '{level}' for {} s, by an operator",
                time.as_secs_f64()
            ),
            None => info!("Log level '{level}', by an operator"),
        });
        match time {
            None => level.clone_into(&mut self.lasting),
            Some(time) => {
                let (now, lasting) = (Arc::clone(&self.now), self.lasting.clone());
                self.ends = Some(tokio::spawn(async move {
                    tokio::time::sleep(time).await;
                    switch(set, &now, &lasting, || info!("Log level '{lasting}' again"));
                }));
            }
        }
        Ok(former)
    }
}

/// Sets a level and logs that, by the more talkative one of both levels. Returns the former one.
fn switch(set: fn(&str) -> bool, now: &Mutex<String>, level: &str, tell: impl Fn()) -> String {
    let mut now = now.lock();
    let is_quieter = rank(level) < rank(&now);
    if is_quieter {
        tell();
    }
    set(level);
    if !is_quieter {
        tell();
    }
    mem::replace(&mut now, level.to_owned())
}

/// The place of a level from the quietest on.
fn rank(level: &str) -> Option<usize> {
    LEVELS.iter().position(|known| *known == level)
}
