//! Maps that peers may fill, as the realm and the vhost keep under their locks, and random numbers from a seed.

mod growing_map;
mod place_map;
mod random;

pub use growing_map::GrowingMap;
pub use place_map::PlaceMap;
pub use random::{SplitMix, Xoshiro, mix};
