//! Streams of a vhost: their changes on the way to the keeper of the files, and pages on the way back.
//!
//! The records of a vhost pass through the keeper while it has changes of that vhost, so that the store has them after
//! the streams do: a dead letter is in its stream before its original is gone, and confirms keep their order. While streams
//! cannot be written, publications that can be refused are. Others wait in the keeper with the departures that belong to
//! them, and hold up nothing else.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crosstie_queues::{Position, QueueId, Record, StreamChange, StreamWant};
use crosstie_streams::{Directory, Keeper, ReadPages, Unwritten, Written};
use tokio::runtime::Handle;

use super::broker::Broker;
use super::stream_files::Trouble;
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
            if let Some(vhost) = self.find_local(&vhost) {
                vhost.note_stream_trouble(id, what);
            }
        }
        let (broker, of_thread) = (Arc::downgrade(self), context.clone());
        let on_written = move |vhost: &Arc<str>, written: Written| {
            let Some(broker) = broker.upgrade() else {
                return;
            };
            let _context = of_thread.enter();
            let (position, found) = (written.position, broker.find_local(vhost));
            if let Some(found) = &found {
                found.handle_written(written);
            }
            let is_gone = found.is_none_or(|found| found.is_deleted());
            if let Some(position) = position.filter(|_| is_gone) {
                broker.settle_streams(vhost, position, Ok(()));
            }
            crosstie_transport::uncork_all();
        };
        let (broker, of_thread) = (Arc::downgrade(self), context.clone());
        let on_read = move |vhost: &Arc<str>, pages| {
            if let Some(broker) = broker.upgrade()
                && let Some(vhost) = broker.find_local(vhost)
            {
                let _context = of_thread.enter();
                vhost.handle_stream_pages(pages);
                crosstie_transport::uncork_all();
            }
        };
        let broker = Arc::downgrade(self);
        let on_trouble = move |vhost: &Arc<str>, id, what| {
            if let Some(broker) = broker.upgrade()
                && let Some(vhost) = broker.find_local(vhost)
            {
                vhost.note_stream_trouble(id, what);
            }
        };
        let (broker, of_thread) = (Arc::downgrade(self), context.clone());
        let on_unwritten = move |vhost: &Arc<str>, mut unwritten: Unwritten<'_>| {
            let Some(broker) = broker.upgrade() else {
                unwritten.give_up();
                return;
            };
            let _context = of_thread.enter();
            let (position, why) = (unwritten.position(), unwritten.error);
            let found = broker.find_local(vhost);
            if found.as_ref().is_none_or(|found| found.is_deleted()) {
                // They go with their vhost, whose deletion waits behind them.
                unwritten.give_up();
                broker.settle_streams(vhost, position, Err(why.to_owned()));
            }
            if let Some(found) = found {
                found.handle_unwritten(unwritten);
            }
            crosstie_transport::uncork_all();
        };
        let started = Keeper::start(directory, on_written, on_unwritten, on_read, on_trouble);
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
        if self.is_deleted() {
            // Its last record is submitted.
            return 0;
        }
        let line = &self.streams;
        if changes.is_empty() && line.submissions.load(Ordering::SeqCst) == 0 {
            line.note_submitted(position);
            return self.shared.submit(&self.name, records, position);
        }
        line.submissions.fetch_add(1, Ordering::SeqCst);
        self.shared
            .submit_to_streams(&self.name, changes, records, position)
    }

    /// The keeper has written changes of this vhost, or all that it could not write was refused.
    fn handle_written(self: &Arc<Self>, written: Written) {
        let Written {
            records,
            position,
            submissions,
            streams,
            error: _,
            is_going_on,
            warning,
        } = written;
        let line = &self.streams;
        let name = &self.name;
        if let Some(warning) = warning {
            tracing::warn!("vhost '{name}': {warning}");
        }
        let mut is_committed = false;
        if let Some(position) = position {
            is_committed = records.is_empty() && line.is_settled();
            if !is_committed {
                line.note_submitted(position);
                self.shared.submit(name, records, position);
            }
        } else if !records.is_empty() {
            // Other records may be submitted meanwhile, with later positions.
            let vhost = self.lock();
            self.shared.submit(name, records, line.submitted());
            drop(vhost);
        }
        let goes_on = is_going_on && line.is_failing.swap(false, Ordering::SeqCst);
        if goes_on {
            tracing::info!("vhost '{name}': streams can be written again");
            self.shared.note_stream_failure(None);
        }
        let mut turn = self.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        for (id, extent, page) in streams {
            vhost.handle_written(now, id, &extent, page, outbox);
        }
        if goes_on {
            vhost.note_streams_going_on();
        }
        if let Some(position) = position.filter(|_| is_committed) {
            vhost.handle_committed(position, outbox);
        }
        turn.finish();
        // Not before: a later position that the store commits must not confirm what was refused here.
        line.submissions.fetch_sub(submissions, Ordering::SeqCst);
        let flow = &self.shared.flow;
        if !flow.is_store_failing() {
            flow.store_wrote(self.shared.store_waiting_bytes());
        }
    }

    /// The keeper could not write changes of this vhost: publications to streams that wait for a confirm are refused. It
    /// tries the others again.
    fn handle_unwritten(self: &Arc<Self>, mut unwritten: Unwritten<'_>) {
        let (line, name) = (&self.streams, &self.name);
        let why = unwritten.error;
        if !line.is_failing.swap(true, Ordering::SeqCst) {
            tracing::error!("vhost '{name}': cannot write to streams: {why}");
        }
        self.shared.note_stream_failure(Some(why));
        // The store has all before these.
        let between = (line.submitted(), unwritten.position());
        let mut turn = self.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        let refused = unwritten.refuse(|content| vhost.is_refusable(content));
        let withdrawn = vhost.refuse_contents(now, &refused, &unwritten.stored(), between, outbox);
        unwritten.leave_out(&withdrawn);
        vhost.note_failing_streams(unwritten.streams());
        turn.finish();
        if unwritten.is_last && unwritten.has_rest() {
            tracing::error!(
                "vhost '{name}': stopping with changes that are not stored, since streams cannot be written: {why}"
            );
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
        let key = vhost.stream_key(id);
        let Some((key, queue)) = key.and_then(|key| Some((key, vhost.name_of(key)?))) else {
            return;
        };
        drop(vhost);
        let name = &self.name;
        tracing::error!("vhost '{name}': stream '{queue}': {what}");
        unreadable.add_lost((queue, key), what);
    }
}
