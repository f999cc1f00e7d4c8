//! Maps that peers may fill, as the realm and the vhost keep under their locks, histograms, and random numbers from a
//! seed.

mod growing_map;
mod histogram;
mod place_map;
mod random;

pub use growing_map::GrowingMap;
pub use histogram::{CLASSES, Histogram, SharedHistogram};
pub use place_map::PlaceMap;
pub use random::{SplitMix, Xoshiro, mix};
