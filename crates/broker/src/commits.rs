//! Threads that wait until a vhost's records are stored.

use std::sync::mpsc;

use crosstie_queues::Position;
use parking_lot::Mutex;

/// Whether the store has it, or why not.
type Stored = Result<(), String>;

/// The positions that threads wait for.
#[derive(Default)]
pub(super) struct Commits(Mutex<Vec<(Position, mpsc::Sender<Stored>)>>);

impl Commits {
    /// Receives once the store has everything up to a position, or cannot write. Called before that is submitted.
    pub(super) fn awaited(&self, position: Position) -> mpsc::Receiver<Stored> {
        let (tell, told) = mpsc::channel();
        self.0.lock().push((position, tell));
        told
    }

    /// Nothing is reported any more.
    pub(super) fn end(&self, why: &str) {
        self.note(Position(u64::MAX), Some(why));
    }

    /// The store's report about everything up to a position.
    pub(super) fn note(&self, position: Position, failed: Option<&str>) {
        let mut waiting = self.0.lock();
        if waiting.is_empty() {
            return;
        }
        waiting.retain(|(awaited, tell)| {
            if *awaited <= position {
                // It may have given up.
                let _ = tell.send(failed.map_or(Ok(()), |why| Err(why.to_owned())));
            }
            *awaited > position
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_for_those_who_wait_for_it() {
        let commits = Commits::default();
        let [first, second] = [1, 2].map(|position| commits.awaited(Position(position)));
        commits.note(Position(1), None);
        assert_eq!(first.try_recv(), Ok(Ok(())));
        assert_eq!(second.try_recv(), Err(mpsc::TryRecvError::Empty));
        commits.note(Position(3), Some("full"));
        assert_eq!(second.try_recv(), Ok(Err("full".to_owned())));
    }
}
