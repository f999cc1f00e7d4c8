//! The threads that serve connections, each with a single-threaded runtime of its own, and the keeper: one more thread,
//! for timers. Work that may take long, such as pages, has a thread too, started when it is first needed. So have
//! connections with large messages and those that speak HTTP: each kind has as many threads as all others. The kernel
//! shares the cores among these, so that small messages do not wait for another connection's large one.
//!
//! The serving runtimes have no timers. A runtime with timers reads the clock and checks them each time it goes to
//! sleep, which is once per message of a sequential caller.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use self::begun::Begun;
use self::turns::Probe;
use crate::balance::{Thread, Threads};
use crate::{Cores, Waiting, clock, waiting};

/// The number of threads, and how they wait.
#[derive(Clone, Copy, Debug)]
pub struct WorkerOptions {
    /// Threads; by default one per core that the process may use.
    pub threads: usize,
    /// The cores for all threads, including the keeper; `None` allows any.
    pub cores: Option<Cores>,
    /// How the threads wait for input.
    pub waiting: Waiting,
    /// Inputs handled before a thread looks for new ones. With tokio's own 61, a connection that always has more to
    /// read delays an idle one's message by 50 ms; with 2, by 2 ms. Each look is a system call.
    pub inputs_per_look: u32,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        Self {
            threads,
            cores: None,
            waiting: Waiting::Adaptive(Waiting::BUDGET_PERCENT),
            inputs_per_look: 2,
        }
    }
}

/// The running threads. They end when they are stopped or this is dropped.
#[derive(Debug)]
pub struct Workers {
    workers: Vec<Worker>,
    keeper: Worker,
    /// The thread of pages, after its first use.
    pages: Mutex<Option<Worker>>,
    /// The thread beside the serving ones, after its first use.
    aside: Mutex<Option<Worker>>,
    /// The threads of large messages, as many as were needed so far.
    bulk: Mutex<Vec<Worker>>,
    /// The threads of connections that speak HTTP, as many as were needed so far.
    web: Mutex<Vec<Worker>>,
    next: AtomicUsize,
    /// The state for assigning connections by load. A thread that always spins looks busy in any case: then,
    /// connections are assigned in turn.
    balanced: Option<Arc<Threads>>,
    next_bulk: AtomicUsize,
    next_web: AtomicUsize,
}

#[derive(Debug)]
struct Worker {
    name: String,
    handle: Handle,
    probe: Probe,
    running: Mutex<Option<RunningWorker>>,
}

#[derive(Debug)]
struct RunningWorker {
    stop: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Workers {
    /// Starts the threads.
    pub fn start(options: WorkerOptions) -> io::Result<Self> {
        let Some(cores) = options.cores else {
            return Self::start_here(options);
        };
        // A thread inherits the cores of its starter. A starter that binds itself first learns whether it may, and has
        // every thread bound from its first instruction.
        let bound = || {
            cores.bind()?;
            Self::start_here(options)
        };
        thread::scope(|scope| {
            let starting = thread::Builder::new().spawn_scoped(scope, bound)?;
            let panicked = |_| Err(io::Error::other("the starting thread panicked"));
            starting.join().unwrap_or_else(panicked)
        })
    }

    fn start_here(options: WorkerOptions) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let keeper = Worker::start("keeper".to_owned(), runtime, None)?;
        keeper.handle.spawn(clock::tick());
        let count = options.threads.max(1);
        let threads = Arc::new(Threads::new(count));
        let worker = |index| {
            let inputs_per_look = options.inputs_per_look.max(1);
            let runtime = serving_runtime(inputs_per_look, waiting::before_wait)?;
            let timers = Some(keeper.handle.clone());
            let waiting = match options.waiting {
                Waiting::Always(_) if index > 0 => Waiting::Adaptive(0),
                waiting => waiting,
            };
            runtime.spawn(enter(threads.thread(index), waiting));
            Worker::start(format!("worker{index}"), runtime, timers)
        };
        let workers = (0..count).map(worker).collect::<io::Result<_>>()?;
        let is_balanced = count > 1 && matches!(options.waiting, Waiting::Adaptive(_));
        let balanced = is_balanced.then_some(threads);
        if let Some(threads) = &balanced {
            let threads = Arc::clone(threads);
            keeper.handle.spawn(threads.keep_balanced());
        }
        Ok(Self {
            workers,
            keeper,
            pages: Mutex::new(None),
            aside: Mutex::new(None),
            bulk: Mutex::default(),
            web: Mutex::default(),
            next: AtomicUsize::new(0),
            balanced,
            next_bulk: AtomicUsize::new(0),
            next_web: AtomicUsize::new(0),
        })
    }

    /// Runs `future` on the next thread in turn.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.next_handle().spawn(future);
    }

    /// Serves a new connection on the first thread that is not busy: `begin` is called there, and makes the future
    /// that serves it, if any.
    pub fn spawn_connection<F>(&self, begin: impl FnOnce() -> Option<F> + Send + Unpin + 'static)
    where
        F: Future<Output = ()> + Send + Unpin + 'static,
    {
        let Some(threads) = &self.balanced else {
            return self.spawn(Begun::new(begin));
        };
        let index = threads.deal();
        let unstarted = Unstarted(threads.thread(index));
        self.workers[index].handle.spawn(Begun::new(move || {
            drop(unstarted);
            begin()
        }));
    }

    /// Continues a connection on the thread that it was asked to move to ([`Ended::Moved`](crate::Ended::Moved)).
    pub fn spawn_moved(&self, to: usize, serve: impl Future<Output = ()> + Send + 'static) {
        self.workers[to % self.workers.len()].handle.spawn(serve);
    }

    /// Runs `future` on the next thread in turn, for no longer than `tasks` exist.
    pub fn spawn_in(
        &self,
        tasks: &mut JoinSet<()>,
        future: impl Future<Output = ()> + Send + 'static,
    ) {
        tasks.spawn_on(future, self.next_handle());
    }

    /// Runs `future` on the first thread.
    pub fn spawn_first(&self, future: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.workers[0].handle.spawn(future)
    }

    /// Runs `future` on the keeper, which has timers and serves no connection.
    pub fn spawn_keeper(
        &self,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        self.keeper.handle.spawn(future)
    }

    /// The tokio context of the next serving thread in turn, for later use.
    pub fn serving_handle(&self) -> Handle {
        self.next_handle().clone()
    }

    /// The tokio contexts of all serving threads.
    pub fn serving_handles(&self) -> Vec<Handle> {
        let workers = self.workers.iter();
        workers.map(|worker| worker.handle.clone()).collect()
    }

    /// Runs `future`, which serves a connection with large messages, on the next thread for these. If that thread
    /// cannot be started, runs it on another one.
    pub fn spawn_bulk(&self, future: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let mut bulk = self.bulk.lock();
        let index = self.next_bulk.fetch_add(1, Ordering::Relaxed) % self.workers.len();
        let mut started = Ok(());
        if index >= bulk.len() {
            started = self.start_bulk(bulk.len()).map(|worker| bulk.push(worker));
        }
        let worker = bulk.get(index).or_else(|| bulk.last());
        let handle = worker.map_or_else(|| self.next_handle(), |worker| &worker.handle);
        handle.spawn(future);
        started
    }

    /// Runs `future` on the thread of pages, which has timers and runs only such futures.
    pub fn spawn_pages(
        &self,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let mut pages = self.pages.lock();
        let worker = match pages.take() {
            Some(worker) => worker,
            None => {
                let runtime = Builder::new_current_thread().enable_all().build()?;
                Worker::start("pages".to_owned(), runtime, None)?
            }
        };
        Ok(pages.insert(worker).handle.spawn(future))
    }

    /// Runs `future`, which serves a connection that speaks HTTP, on the next thread for these: it has timers, and
    /// delays no messages.
    pub fn spawn_web(&self, future: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let mut web = self.web.lock();
        let index = self.next_web.fetch_add(1, Ordering::Relaxed) % self.workers.len();
        if index >= web.len() {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let name = format!("web{}", web.len());
            web.push(Worker::start(name, runtime, None)?);
        }
        if let Some(worker) = web.get(index).or_else(|| web.last()) {
            worker.handle.spawn(future);
        }
        Ok(())
    }

    /// The tokio context of a thread for work that concerns both protocols: it has timers, and no client's connection.
    /// The first call starts the thread.
    pub fn aside_handle(&self) -> io::Result<Handle> {
        let mut aside = self.aside.lock();
        let worker = match aside.take() {
            Some(worker) => worker,
            None => {
                let runtime = Builder::new_current_thread().enable_all().build()?;
                Worker::start("aside".to_owned(), runtime, None)?
            }
        };
        Ok(aside.insert(worker).handle.clone())
    }

    /// The keeper's tokio context, for threads without one.
    pub fn keeper_handle(&self) -> Handle {
        self.keeper.handle.clone()
    }

    /// Runs `action` now, in the first thread's tokio context: sockets that it registers belong to that thread.
    pub fn enter_first<R>(&self, action: impl FnOnce() -> R) -> R {
        let _context = self.workers[0].handle.enter();
        action()
    }

    /// Ends the threads, and with them every task: listeners are closed, connections dropped.
    pub fn stop(&self) {
        self.workers.iter().for_each(Worker::stop);
        if let Some(pages) = &*self.pages.lock() {
            pages.stop();
        }
        if let Some(aside) = &*self.aside.lock() {
            aside.stop();
        }
        let bulk = mem::take(&mut *self.bulk.lock());
        bulk.iter().for_each(Worker::stop);
        let web = mem::take(&mut *self.web.lock());
        web.iter().for_each(Worker::stop);
        self.keeper.stop();
    }

    /// The number of threads.
    pub fn count(&self) -> usize {
        self.workers.len()
    }

    fn start_bulk(&self, index: usize) -> io::Result<Worker> {
        let runtime = serving_runtime(BULK_INPUTS_PER_LOOK, || ())?;
        let timers = Some(self.keeper.handle.clone());
        Worker::start(format!("bulk{index}"), runtime, timers)
    }

    fn next_handle(&self) -> &Handle {
        let index = self.next.fetch_add(1, Ordering::Relaxed) % self.workers.len();
        &self.workers[index].handle
    }
}

/// Marks the thread of the calling task, and spins for it.
async fn enter(thread: Arc<Thread>, waiting: Waiting) {
    Arc::clone(&thread).enter();
    if let Some(spinning) = waiting::prepare(waiting, thread) {
        spinning.await;
    }
}

/// A connection that was assigned to a thread and has not started there.
struct Unstarted(Arc<Thread>);

impl Drop for Unstarted {
    fn drop(&mut self) {
        self.0.note_begun();
    }
}

/// Each turn is long there anyway.
const BULK_INPUTS_PER_LOOK: u32 = 2;

fn serving_runtime(
    inputs_per_look: u32,
    before_wait: impl Fn() + Send + Sync + 'static,
) -> io::Result<Runtime> {
    Builder::new_current_thread()
        .enable_io()
        .event_interval(inputs_per_look)
        .on_thread_park(before_wait)
        .build()
}

impl Worker {
    /// Starts a thread; `timers` is the runtime with the timers, if this one has none.
    fn start(name: String, runtime: Runtime, timers: Option<Handle>) -> io::Result<Self> {
        let handle = runtime.handle().clone();
        let timers = timers.unwrap_or_else(|| handle.clone());
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name(name.clone()).spawn(move || {
            TIMERS.set(Some(timers));
            // An error means that the sender is gone, which is a stop too.
            let _ = runtime.block_on(stopped);
        })?;
        let running = Mutex::new(Some(RunningWorker { stop, thread }));
        Ok(Self {
            name,
            handle,
            probe: Probe::default(),
            running,
        })
    }

    fn stop(&self) {
        let Some(running) = self.running.lock().take() else {
            return;
        };
        // A thread that has ended needs no signal, and has reported its panic itself.
        let _ = running.stop.send(());
        if running.thread.thread().id() != thread::current().id() {
            let _ = running.thread.join();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Waits, also on a thread without timers.
pub(crate) async fn pause(duration: Duration) {
    let timers = TIMERS.with_borrow(Option::clone);
    if let Some(timers) = timers {
        let waiting = timers.spawn(async move { tokio::time::sleep(duration).await });
        if waiting.await.is_ok() {
            return;
        }
    }
    // Not a worker's thread, or its keeper has ended.
    tokio::task::yield_now().await;
}

thread_local! {
    /// The runtime whose timers serve this thread.
    static TIMERS: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

mod begun;
#[cfg(test)]
mod tests;
mod turns;
