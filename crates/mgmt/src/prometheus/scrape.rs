//! The body of an answer: first the objects are read, then their figures are written, in parts.

use std::sync::Arc;

use crosstie_broker::vhost::SharedVhost;

use super::node::Node;
use super::objects::{
    CHANNELS, CONNECTIONS, EXCHANGES, QUEUES, VHOSTS, push_channel, push_connection, push_exchange,
    push_queue, push_vhost,
};
use super::registry::{PREFIX, Registry};
use super::table::{Columns, Table};
use super::text::Text;
use crate::call::Api;

const CLUSTER: &str = "rabbitmq_cluster_";

/// The parts of an answer. An empty part only ends a turn.
pub struct Scrape {
    api: Arc<Api>,
    registry: Registry,
    stage: Stage,
    queues: Table<16>,
    /// The vhosts, and the place from which on queues are to be read.
    vhosts: Vec<Arc<SharedVhost>>,
    vhost: usize,
    place: usize,
    tables: Vec<(&'static str, Box<dyn Columns>)>,
    /// The columns that are not written yet, the next one last: a table and its column.
    columns: Vec<(usize, usize)>,
    row: usize,
}

enum Stage {
    Queues,
    Objects,
    Node,
    Tables,
}

impl Scrape {
    pub(super) fn new(api: &Arc<Api>, registry: Registry) -> Self {
        let mut vhosts = api.operators.open_vhosts();
        if let Registry::Detailed { vhosts: named, .. } = &registry
            && !named.is_empty()
        {
            vhosts.retain(|vhost| named.iter().any(|name| **name == **vhost.name()));
        }
        let queues = Table::new(&QUEUES, matches!(registry, Registry::Aggregated));
        let stage = match queues.wanted(registry.families()).is_empty() {
            true => Stage::Objects,
            false => Stage::Queues,
        };
        Self {
            api: Arc::clone(api),
            registry,
            stage,
            queues,
            vhosts,
            vhost: 0,
            place: 0,
            tables: Vec::new(),
            columns: Vec::new(),
            row: 0,
        }
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        let tables = self.tables.iter().map(|(_, table)| table.bytes());
        self.queues.bytes() + tables.sum::<usize>()
    }

    /// Reads some queues.
    fn read_queues(&mut self) {
        let Some(vhost) = self.vhosts.get(self.vhost) else {
            self.stage = Stage::Objects;
            return;
        };
        let part = vhost.queues_part(self.place);
        for queue in &part.items {
            push_queue(&mut self.queues, vhost.name(), queue);
        }
        match part.next {
            Some(next) => self.place = next,
            None => (self.vhost, self.place) = (self.vhost + 1, 0),
        }
    }

    /// Reads the other objects, as far as they are wanted.
    fn read_objects(&mut self) {
        let is_summed = matches!(self.registry, Registry::Aggregated);
        let sees = |name: &str| self.vhosts.iter().any(|vhost| **vhost.name() == *name);
        let operators = &self.api.operators;
        let mut channels = Table::new(&CHANNELS, is_summed);
        if !is_summed && self.wants(&channels) {
            let views = operators.channel_views().into_iter();
            let views = views.filter(|view| sees(&view.vhost));
            views.for_each(|view| push_channel(&mut channels, &view));
        }
        let mut connections = Table::new(&CONNECTIONS, is_summed);
        if !is_summed && self.wants(&connections) {
            let views = operators.connection_views().into_iter();
            let views = views.filter(|view| sees(&view.status.vhost));
            views.for_each(|view| push_connection(&mut connections, &view));
        }
        let queues = std::mem::replace(&mut self.queues, Table::new(&QUEUES, is_summed));
        let prefix = self.registry.prefix();
        self.tables = vec![(prefix, Box::new(queues))];
        if !is_summed {
            self.tables.push((prefix, Box::new(channels)));
            self.tables.push((prefix, Box::new(connections)));
        }
        if let Registry::Detailed { .. } = self.registry {
            self.read_cluster();
        }
        let families = self.registry.families();
        for (number, (_, table)) in self.tables.iter().enumerate().rev() {
            let columns = table.wanted(families).into_iter().rev();
            self.columns.extend(columns.map(|column| (number, column)));
        }
        // A client that does not read must not keep a deleted vhost.
        self.vhosts.clear();
        self.stage = Stage::Node;
    }

    /// Reads exchanges and vhosts.
    fn read_cluster(&mut self) {
        let mut exchanges = Table::new(&EXCHANGES, false);
        let mut found = Table::new(&VHOSTS, false);
        for vhost in &self.vhosts {
            push_vhost(&mut found, vhost.name());
            if self.wants(&exchanges) {
                for exchange in vhost.exchange_views() {
                    push_exchange(&mut exchanges, vhost.name(), &exchange);
                }
            }
        }
        self.tables.push((CLUSTER, Box::new(exchanges)));
        self.tables.push((CLUSTER, Box::new(found)));
    }

    fn wants(&self, table: &impl Columns) -> bool {
        !table.wanted(self.registry.families()).is_empty()
    }

    fn write_node(&mut self) -> Vec<u8> {
        let api = &self.api;
        let node = Node::read(api);
        let mut out = Vec::new();
        let mut text = Text {
            out: &mut out,
            prefix: PREFIX,
        };
        Node::write_identity(api, self.registry.endpoint(), &mut text);
        if !matches!(self.registry, Registry::Detailed { .. }) {
            node.write_whole(api, &mut text);
        }
        if let Registry::Aggregated = self.registry {
            node.write_sums(&mut text);
        }
        text.prefix = self.registry.prefix();
        node.write_parts(api, self.registry.families(), &mut text);
        self.stage = Stage::Tables;
        out
    }

    /// Writes some samples of a family; `None`: all are written.
    fn write_table(&mut self) -> Option<Vec<u8>> {
        let (number, column) = *self.columns.last()?;
        let mut out = Vec::new();
        let (prefix, table) = &self.tables[number];
        let mut text = Text {
            out: &mut out,
            prefix,
        };
        match table.write(column, self.row, &mut text) {
            Some(next) => self.row = next,
            None => {
                self.columns.pop();
                self.row = 0;
            }
        }
        Some(out)
    }
}

impl Iterator for Scrape {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        match self.stage {
            Stage::Queues => self.read_queues(),
            Stage::Objects => self.read_objects(),
            Stage::Node => return Some(self.write_node()),
            Stage::Tables => return self.write_table(),
        }
        Some(Vec::new())
    }
}
