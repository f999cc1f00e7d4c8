//! Waiting clients of long-poll, and the router's memory for each: the difference between two numbers of them.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use super::client::{Client, LongPoll};
use super::driver::Order;
use super::options::HttpOptions;
use super::round::start;
use super::servers::{LONG_POLL_PATH, Server, Servers};
use crate::figures::Figures;
use crate::frame::Stage;
use crate::load::Found;
use crate::machine::{Memory, bind_processes};
use crate::process::{Driver, WorkerError, descriptors, instruction, say};
use crate::subject::REALM;

/// So many are there before the rest, so that the allocations of the first ones are in neither number.
const FIRST: usize = 500;
const LONGEST: Duration = Duration::from_secs(60);

/// Opens clients on command, and leaves them waiting.
pub(super) fn work(address: SocketAddr) -> Result<(), WorkerError> {
    descriptors::raise();
    let mut clients = Vec::new();
    say(&Driver::<Found>::Ready);
    while let Some(count) = instruction::<usize>()? {
        while clients.len() < count {
            let mut client = Client::connect(address, &address.to_string())?;
            let session = LongPoll::open(&mut client, LONG_POLL_PATH, REALM)?;
            client.begin(&session.receive_path(), "")?;
            clients.push(client);
        }
        say(&Driver::Found(Found {
            count: clients.len() as u64,
            ..Found::default()
        }));
    }
    Ok(())
}

pub(super) fn run(options: &HttpOptions, stage: &Stage<'_>) -> Result<Figures, String> {
    let name = format!("waiting{}", stage.at);
    let (_running, server) =
        Servers::start_another(stage.site, &name).map_err(|error| error.to_string())?;
    bind_processes(&server.processes, &stage.cores.router).map_err(|error| error.to_string())?;
    let mut clients = start(stage, &Order::Wait(server.address))?;
    let mut memory_with = |count: usize| {
        clients.tell(0, &count);
        let held = clients.expect(LONGEST, "clients wait", Driver::found)?;
        thread::sleep(options.settling());
        if held.count != count as u64 {
            return Err(format!("{} clients wait in place of {count}", held.count));
        }
        memory(&server)
    };
    let before = memory_with(FIRST)?;
    let after = memory_with(options.clients)?;
    let clients = (options.clients - FIRST) as f64;
    Ok(Figures::new()
        .with("clients", options.clients as f64)
        .with("pss_bytes", after)
        .with("pss_bytes_per_client", (after - before) / clients))
}

fn memory(server: &Server) -> Result<f64, String> {
    let memory = Memory::of(&server.processes);
    let memory = memory.map_err(|error| format!("memory: {error}"))?;
    Ok(memory.pss as f64)
}

/// Fewer would be less than the first ones.
pub(super) const CLIENTS_MIN: usize = FIRST + 1;
