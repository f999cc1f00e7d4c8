//! The processes of `bench mqtt`'s drivers.

use serde::{Deserialize, Serialize};

use super::connections::{self, ConnectionsOrder};
use super::idle::{self, IdleOrder};
use super::kept;
use super::load::Load;
use super::order::{LoadFinding, LoadOrder, version};
use super::wire::Dial;
use crate::load::Window;
use crate::process::{Driver, WorkerError, descriptors, instruction, say};

pub(crate) const ROLE: &str = "mqtt";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Order {
    Load(LoadOrder),
    Connect(ConnectionsOrder),
    Hold(IdleOrder),
}

pub(crate) fn work(order: Order) -> Result<(), WorkerError> {
    match order {
        Order::Load(order) => load(&order),
        Order::Connect(order) => connections::work(&order),
        Order::Hold(order) => idle::work(&order),
    }
}

fn load(order: &LoadOrder) -> Result<(), WorkerError> {
    descriptors::raise();
    let dial = Dial::new(&order.broker, version(order.is_v5))?;
    let mut load = Load::connect(order, &dial)?;
    say(&Driver::<LoadFinding>::Ready);
    let Some(window) = instruction::<Window>()? else {
        return Ok(());
    };
    load.run(window)?;
    let (mut found, published) = load.finish()?;
    if order.is_away {
        kept::drain(order, &dial, &published, &mut found.faults)?;
    } else if order.is_kept {
        kept::remove(order, &dial)?;
    }
    say(&Driver::Found(found));
    Ok(())
}
