//! A link: two legs.

use crate::leg::Leg;
use crate::sides::{End, Kind, Settings, Side};

/// See the crate's documentation.
#[derive(Debug)]
pub struct Link {
    pub(crate) settings: Settings,
    pub(crate) legs: [Leg; 2],
}

impl Link {
    pub fn new(settings: Settings, [local, remote]: [End; 2]) -> Self {
        Self {
            settings,
            legs: [Leg::new(local), Leg::new(remote)],
        }
    }

    /// Number of mirrors of a kind that the link holds on a side.
    pub fn held(&self, side: Side, kind: Kind) -> usize {
        self.legs[side as usize].held(kind)
    }

    /// Number of open calls from a side.
    pub fn calls(&self, from: Side) -> usize {
        self.legs[from as usize].invoked.len()
    }

    /// Whether the initial inventory of both sides is complete.
    pub fn is_ready(&self) -> bool {
        self.legs.iter().all(|leg| leg.is_ready())
    }
}
