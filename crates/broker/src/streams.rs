//! Streams of a vhost: their changes on the way to the keeper of the files, and pages on the way back.
//!
//! The records of a vhost pass through the keeper while it has changes of that vhost, so that the store has them after
//! the streams do: a dead letter is in its stream before its original is gone, and confirms keep their order.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crosstie_queues::{Position, QueueId, Record, StreamChange, StreamWant};
use crosstie_streams::{Directory, Keeper, ReadPages, Written};
use tokio::runtime::Handle;

use super::broker::Broker;
use super::stream_files::Trouble;
use super::unreadable::Unreadable;
use super::vhost::SharedVhost;

impl Broker {
    /// Starts the threads of the streams' files.
    pub(super) fn start_streams(
        self: &Arc<Self>,
        directory: Directory,
        troubles: Vec<Trouble>,
        context: &Handle,
    ) -> Result<(), String> {
        for Trouble { vhost, id, what } in troubles {
            if let Some(vhost) = self.local(&vhost) {
                vhost.note_stream_trouble(id, what);
            }
        }
        let (broker, of_thread) = (Arc::downgrade(self), context.clone());
        let on_written = move |vhost: &Arc<str>, written| {
            if let Some(broker) = broker.upgrade()
                && let Some(vhost) = broker.local(vhost)
            {
                let _context = of_thread.enter();
                vhost.handle_written(written);
                crosstie_transport::uncork_all();
            }
        };
        let (broker, of_thread) = (Arc::downgrade(self), context.clone());
        let on_read = move |vhost: &Arc<str>, pages| {
            if let Some(broker) = broker.upgrade()
                && let Some(vhost) = broker.local(vhost)
            {
                let _context = of_thread.enter();
                vhost.handle_stream_pages(pages);
                crosstie_transport::uncork_all();
            }
        };
        let broker = Arc::downgrade(self);
        let on_trouble = move |vhost: &Arc<str>, id, what| {
            if let Some(broker) = broker.upgrade()
                && let Some(vhost) = broker.local(vhost)
            {
                vhost.note_stream_trouble(id, what);
            }
        };
        let started = Keeper::start(directory, on_written, on_read, on_trouble);
        let keeper = started.map_err(|error| format!("the streams' threads: {error}"))?;
        self.shared.set_streams(keeper);
        Ok(())
    }
}

impl SharedVhost {
    /// Submits to the store of this node, by way of the streams' keeper while it has changes of this vhost. Under the
    /// vhost's lock.
    pub(super) fn submit_here(
        &self,
        records: Vec<Record>,
        changes: Vec<StreamChange>,
        position: Position,
    ) -> usize {
        let line = &self.streams;
        if changes.is_empty() && line.submissions.load(Ordering::SeqCst) == 0 {
            line.note_submitted(position);
            return self.shared.submit(&self.name, records, position);
        }
        line.submissions.fetch_add(1, Ordering::SeqCst);
        self.shared
            .submit_to_streams(&self.name, changes, records, position)
    }

    /// The keeper has written changes of this vhost, or could not.
    fn handle_written(self: &Arc<Self>, written: Written) {
        let Written {
            records,
            position,
            submissions,
            streams,
            error,
            warning,
        } = written;
        let line = &self.streams;
        let name = &self.name;
        if let Some(warning) = warning {
            tracing::warn!("vhost '{name}': {warning}");
        }
        let mut is_committed = false;
        let stored: Vec<_> = match error {
            Some(_) => records.iter().filter_map(stored_at).collect(),
            None => Vec::new(),
        };
        if let Some(position) = position {
            is_committed = records.is_empty() && line.is_settled();
            if !is_committed {
                line.note_submitted(position);
                self.shared.submit(name, records, position);
            }
            let was_failing = line.is_failing.swap(error.is_some(), Ordering::SeqCst);
            match &error {
                Some(why) if !was_failing => {
                    tracing::error!("vhost '{name}': cannot write to streams: {why}");
                }
                None if was_failing => {
                    tracing::info!("vhost '{name}': streams can be written again");
                }
                _ => {}
            }
            self.shared.note_stream_failure(error.as_deref());
        }
        let mut turn = self.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        for (id, extent, page) in streams {
            vhost.handle_written(now, id, &extent, page, outbox);
        }
        match position {
            Some(position) if error.is_some() => {
                vhost.withdraw(&stored);
                vhost.handle_not_committed(now, position, outbox);
            }
            Some(position) if is_committed => vhost.handle_committed(position, outbox),
            _ => {}
        }
        turn.finish();
        // Not before: a later position that the store commits must not confirm what was refused here.
        line.submissions.fetch_sub(submissions, Ordering::SeqCst);
        let flow = &self.shared.flow;
        if !flow.is_store_failing() {
            flow.store_wrote(self.shared.store_waiting_bytes());
        }
    }

    /// Has a page of a stream read.
    pub(super) fn read_stream(&self, want: StreamWant) {
        self.shared.read_stream(&self.name, want);
    }

    fn handle_stream_pages(self: &Arc<Self>, pages: ReadPages) {
        for (want, page) in pages {
            let mut turn = self.turn(Instant::now());
            let (vhost, now, outbox) = turn.enter();
            vhost.handle_stream_page(now, &want, page, outbox);
            turn.spend();
            turn.finish();
        }
    }

    /// Messages of a stream cannot be read. Its readers get the others; an alarm names it.
    fn note_stream_trouble(&self, id: QueueId, what: String) {
        let vhost = self.lock();
        let mut unreadable = self.unreadable.lock();
        unreadable.retain(|queue, _| vhost.has_queue(queue));
        let Some(queue) = vhost.stream_name(id) else {
            return;
        };
        drop(vhost);
        let name = &self.name;
        tracing::error!("vhost '{name}': stream '{queue}': {what}");
        let found = Unreadable {
            want: None,
            why: what,
        };
        unreadable.insert(queue, found);
    }
}

/// The queue and place of a message that a record stores.
fn stored_at(record: &Record) -> Option<(QueueId, i64)> {
    match record {
        Record::Enqueued { queue, place, .. } => Some((*queue, *place)),
        _ => None,
    }
}
