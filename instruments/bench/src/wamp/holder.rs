//! Holds idle sessions: each joined, with one subscription. It answers the router's pings, or the router would rightly
//! consider its peers dead.

use std::io::{self, BufRead};
use std::net::Ipv4Addr;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

use crate::process::{WorkerError, descriptors, say};
use crate::subject::Target;
use crate::wamp::pipe::Pipe;

pub(crate) const ROLE: &str = "holder";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HolderReport {
    Ready,
    /// This many sessions are held now.
    Holding {
        sessions: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Instruction {
    /// Open more, up to this many.
    Hold { sessions: usize },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HolderOrder {
    pub target: Target,
    /// The source address of its TCP connections.
    pub source: Ipv4Addr,
    /// Each session subscribes to a topic of its own, with this prefix.
    pub topic_prefix: String,
}

/// Descriptors that are not sessions: standard streams, epoll and the like.
const DESCRIPTORS_SPARE: u64 = 64;

/// Maximum number of sessions of one holder.
pub(crate) fn sessions_max() -> usize {
    let limit = getrlimit(Resource::Nofile).maximum;
    limit.map_or(usize::MAX, |descriptors| {
        usize::try_from(descriptors.saturating_sub(DESCRIPTORS_SPARE)).unwrap_or(usize::MAX)
    })
}

const STANDARD_INPUT: u64 = u64::MAX;

/// Opens sessions on command, keeps them alive, and ends with its standard input.
pub(crate) fn work(order: HolderOrder) -> Result<(), WorkerError> {
    descriptors::raise();
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
    let input = io::stdin();
    epoll::add(
        &epoll,
        &input,
        EventData::new_u64(STANDARD_INPUT),
        EventFlags::IN,
    )
    .map_err(io::Error::from)?;
    let mut sessions: Vec<Option<Pipe>> = Vec::new();
    let mut events = Vec::with_capacity(1024);
    say(&HolderReport::Ready);
    loop {
        events.clear();
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        for event in &events {
            let at = event.data.u64();
            if at == STANDARD_INPUT {
                let mut line = String::new();
                if input.lock().read_line(&mut line)? == 0 {
                    return Ok(());
                }
                let Instruction::Hold { sessions: wanted } = serde_json::from_str(&line)?;
                grow(&epoll, &mut sessions, &order, wanted)?;
                say(&HolderReport::Holding {
                    sessions: sessions.iter().flatten().count(),
                });
                continue;
            }
            let Some(session) = usize::try_from(at).ok().and_then(|at| sessions.get_mut(at)) else {
                continue;
            };
            if let Some(pipe) = session
                && !pipe.keep_alive()?
            {
                *session = None;
            }
        }
    }
}

fn grow(
    epoll: &impl std::os::fd::AsFd,
    sessions: &mut Vec<Option<Pipe>>,
    order: &HolderOrder,
    wanted: usize,
) -> Result<(), WorkerError> {
    while sessions.len() < wanted {
        let mut pipe = Pipe::connect_idle(&order.target, order.source)?;
        pipe.join(&order.target.realm)?;
        let topic = format!("{}.{}", order.topic_prefix, sessions.len());
        pipe.subscribe(&topic)?;
        let data = EventData::new_u64(sessions.len() as u64);
        epoll::add(epoll, &pipe, data, EventFlags::IN).map_err(io::Error::from)?;
        sessions.push(Some(pipe));
    }
    Ok(())
}
