//! A comparison of WebSocket servers by one load: the common part of `bench echo` and `bench handshake`.

use serde_json::Value;

use super::servers::{Server, Servers, ServersOptions};
use super::usage;
use crate::error::BenchError;
use crate::figures::{Figures, Round, Series};
use crate::frame::{
    self, Column, Common, Goal, Instrument, Limit, Section, Site, Stage, Testbed, Threads,
};

/// A load, its figures and its goals.
pub(crate) trait Contest {
    const NAME: &'static str;
    const RATE: &'static str;
    const SERVER_CPU: &'static str;

    fn common(&self) -> &Common;
    fn servers(&self) -> &ServersOptions;
    fn load(&self) -> String;
    fn settings(&self) -> Value;
    fn columns() -> Vec<Column>;
    fn goals() -> Vec<Goal>;
    fn round(&self, stage: &Stage<'_>, server: &Server) -> Result<Figures, String>;
}

/// Measures, prints, and writes the results file if requested.
pub(crate) fn compare(contest: impl Contest) -> Result<bool, BenchError> {
    frame::run::run(Comparison {
        contest,
        servers: Servers::default(),
    })
}

struct Comparison<C> {
    contest: C,
    servers: Servers,
}

impl<C: Contest> Instrument for Comparison<C> {
    const NAME: &'static str = C::NAME;
    const OVER_FLOOR: &'static [&'static str] = &[C::RATE, C::SERVER_CPU];

    type Case = &'static str;
    type Subject = Server;

    fn common(&self) -> &Common {
        self.contest.common()
    }

    fn start(&mut self, site: &Site) -> Result<(), BenchError> {
        self.servers = Servers::start(site, self.contest.servers())?;
        Ok(())
    }

    fn testbed(&self) -> Testbed {
        self.servers.testbed()
    }

    fn load(&self) -> Option<String> {
        Some(self.contest.load())
    }

    fn settings(&self, _site: &Site) -> Value {
        self.contest.settings()
    }

    fn cases(&self) -> Result<Vec<&'static str>, BenchError> {
        Ok(vec![C::NAME])
    }

    fn threads(&self) -> Threads {
        Threads {
            server: 1,
            clients: 2,
        }
    }

    fn subjects(&mut self, stage: &Stage<'_>, _: &&'static str) -> Result<Vec<Server>, BenchError> {
        self.servers.on(&stage.cores.router)
    }

    fn round(&mut self, stage: &Stage<'_>, _: &&'static str, server: &mut Server) -> Round {
        Ok(self.contest.round(stage, server)?)
    }

    fn limit(&self, section: &Section<&'static str>, _: &Series) -> Option<Limit> {
        Some(usage::limit(section.placement))
    }

    fn columns(&self, _: &&'static str) -> Vec<Column> {
        C::columns()
    }

    fn below(&self, _site: &Site, sections: &[&Section<&'static str>]) -> Vec<String> {
        sections.iter().flat_map(|one| usage::lines(one)).collect()
    }

    fn goals(&self, _: &Section<&'static str>, _before: &[Section<&'static str>]) -> Vec<Goal> {
        C::goals()
    }
}
