//! The faults of a run: machines lost and cut off, programs killed and stopped, disks that lose what they had.

use crate::chance::Chance;
use crate::server::Sync;
use crate::world::World;

/// What strikes, when, and what heals.
pub(crate) struct Faults {
    strikes_at: u64,
    ends_at: u64,
    heals: Vec<(u64, Heal)>,
    pub(crate) count: u64,
}

#[derive(Clone, Copy, Debug)]
enum Heal {
    Start(usize),
    Join(usize),
}

const EVERY_MS: std::ops::Range<u64> = 300..6000;
const LASTS_MS: std::ops::Range<u64> = 200..12_000;

impl Faults {
    pub(crate) fn new(chance: &mut Chance) -> Self {
        Self {
            strikes_at: chance.within(500..3000),
            ends_at: u64::MAX,
            heals: Vec::new(),
            count: 0,
        }
    }

    pub(crate) fn due(&self) -> u64 {
        let heals = self.heals.iter().map(|(at, _)| *at);
        let strikes_at = match self.strikes_at < self.ends_at {
            true => self.strikes_at,
            false => u64::MAX,
        };
        heals.min().unwrap_or(u64::MAX).min(strikes_at)
    }
}

impl World {
    /// Ends all faults: every machine is back, except a server that was lost for good.
    pub(crate) fn heal(&mut self) {
        self.faults.ends_at = self.now;
        self.faults.heals.clear();
        for place in 0..self.machines.len() {
            let machine = &mut self.machines[place];
            (machine.is_cut, machine.asleep_until, machine.slow_ms) = (false, 0, 0);
            self.start(place);
        }
    }

    /// The next fault, or the end of one.
    pub(crate) fn strike(&mut self) {
        let now = self.now;
        let healed = self.faults.heals.iter().position(|(at, _)| *at <= now);
        if let Some(at) = healed {
            match self.faults.heals.swap_remove(at).1 {
                Heal::Start(place) => self.start(place),
                Heal::Join(place) => {
                    let machine = &mut self.machines[place];
                    (machine.is_cut, machine.slow_ms) = (false, 0);
                }
            }
            return;
        }
        self.faults.strikes_at = now + self.chance.within(EVERY_MS);
        self.faults.count += 1;
        let owner = self.nodes.iter().find(|node| node.term.is_some());
        let owner = owner.map(|node| node.place);
        let any = self.chance.within(0..self.machines.len() as u64) as usize;
        let place = owner.filter(|_| self.chance.percent(60)).unwrap_or(any);
        let lasts = self.chance.within(LASTS_MS);
        let machine = &mut self.machines[place];
        match self.chance.within(0..12) {
            0 | 1 => {
                self.stop(place, (true, true));
                self.faults.heals.push((now + lasts, Heal::Start(place)));
            }
            2 => {
                self.stop(place, (true, false));
                self.faults.heals.push((now + lasts, Heal::Start(place)));
            }
            3 => {
                self.stop(place, (false, true));
                self.faults.heals.push((now + lasts, Heal::Start(place)));
            }
            4 => {
                machine.is_cut = true;
                self.faults.heals.push((now + lasts, Heal::Join(place)));
            }
            5 => machine.asleep_until = now + lasts,
            6 => {
                machine.slow_ms = self.chance.within(20..1500);
                self.faults.heals.push((now + lasts, Heal::Join(place)));
            }
            7 => self.lose_disk(place),
            8 => {
                let is_first = self.machines.iter().all(|each| !each.is_server_lost);
                let is_whole = self.servers.iter().all(|server| !server.is_behind);
                let is_enough = is_first && is_whole && self.servers.len() > 2;
                if is_enough && self.chance.percent(30) {
                    self.stop(place, (true, true));
                    self.machines[place].is_server_lost = true;
                    self.faults.heals.push((now + lasts, Heal::Start(place)));
                }
            }
            _ => {
                let place = self.chance.within(0..self.nodes.len() as u64) as usize;
                self.nodes[place].is_mistaken = true;
            }
        }
    }

    fn stop(&mut self, place: usize, (node, server): (bool, bool)) {
        let machine = &mut self.machines[place];
        machine.is_node_up &= !node;
        machine.is_server_up &= !server;
    }

    fn start(&mut self, place: usize) {
        let now = self.now;
        let machine = &mut self.machines[place];
        if !machine.is_node_up {
            machine.is_node_up = true;
            machine.asleep_until = 0;
            self.nodes[place].restart(now);
        }
        if !machine.is_server_up && !machine.is_server_lost && place < self.servers.len() {
            machine.is_server_up = true;
            self.servers[place].restart(now, &mut self.chance);
        }
    }

    /// A server is killed and comes back without its last slots, if it does not sync, or with an empty disk. The others
    /// are there until it has caught up: two servers that lose their data at once are more than a group survives.
    fn lose_disk(&mut self, place: usize) {
        let is_there = |at: usize| {
            let machine = &self.machines[at];
            machine.is_server_up && !machine.is_cut && !self.servers[at].is_behind
        };
        let is_whole = (0..self.servers.len()).all(is_there);
        if !is_whole || self.servers.len() < 3 || place >= self.servers.len() {
            return;
        }
        let slots = match self.servers[place].sync {
            Sync::Sometimes if self.chance.percent(70) => self.chance.within(1..30) as usize,
            _ => usize::MAX,
        };
        self.servers[place].lose(slots);
        self.servers[place].restart(self.now, &mut self.chance);
    }
}
