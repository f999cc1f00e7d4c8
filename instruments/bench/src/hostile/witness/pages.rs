//! A client that requests `/health`, as a node's monitoring does.

use std::time::{Duration, Instant};

use super::{Act, Note, Order};
use crate::hostile::pages;
use crate::hostile::ways::Pages;
use crate::process::WorkerError;

pub(super) fn acts(order: &Order) -> Vec<Box<dyn Act>> {
    let getter = |pages: &Pages| -> Box<dyn Act> {
        Box::new(Getter {
            pages: pages.clone(),
            patience: order.patience,
        })
    };
    order.ways.pages.iter().map(getter).collect()
}

struct Getter {
    pages: Pages,
    patience: Duration,
}

impl Act for Getter {
    fn name(&self) -> &'static str {
        "health"
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(25)
    }

    fn act(&mut self, note: &mut Note) -> Result<(), WorkerError> {
        let begun = Instant::now();
        pages::read(&self.pages, "/health", self.patience)?;
        note.waited(self.name(), begun);
        Ok(())
    }
}
