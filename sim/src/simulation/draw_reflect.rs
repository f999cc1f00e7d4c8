//! Draws the next definition, or a question about definitions.

use super::Simulation;
use super::draw::URIS;
use crate::reflect::{Defined, Reflect, Whether};
use crate::{Ask, Name};

impl Simulation {
    /// Often about defined ones, so that several sessions define the same.
    pub(super) fn draw_reflect(&mut self, from: Name) -> Ask {
        let known = self.model.definitions.iter();
        let known: Vec<_> = known.map(|known| (known.of, known.uri.clone())).collect();
        let (kind, uri) = match self.chance.pick_any(&known) {
            Some(known) if !self.chance.one_in(3) => known,
            _ => (
                self.chance.pick(&Defined::ALL),
                self.chance.pick(&URIS).to_owned(),
            ),
        };
        let of = self.draw_whether(kind);
        let description = format!("said by {from}, {}", self.next_payload());
        Ask::Reflection(match self.chance.below(10) {
            0..5 => Reflect::Define {
                uri,
                description,
                of,
            },
            5 => Reflect::Undefine { uri, of },
            6 => Reflect::Describe { uri, of },
            7 => Reflect::DescribeOne { uri, of: kind },
            _ => Reflect::List { of: kind },
        })
    }

    fn draw_whether(&mut self, kind: Defined) -> Whether {
        match self.chance.below(16) {
            0 => Whether::Nonsense,
            1..4 => Whether::Unsaid,
            _ => Whether::Said(kind),
        }
    }
}
