//! Maps that peers may fill, as the realm and the vhost keep under their locks, slabs with generations, histograms, random
//! numbers from a seed, and enums with names.

mod growing_map;
mod histogram;
mod named;
mod place_map;
mod random;
mod slab;

pub use growing_map::GrowingMap;
pub use histogram::{CLASSES, Histogram, SharedHistogram};
pub use place_map::PlaceMap;
pub use random::{SplitMix, Xoshiro, mix};
pub use slab::{Beside, Key, Slab};
