//! Maps that peers may fill, as the realm and the vhost keep under their locks.

mod growing_map;

pub use growing_map::GrowingMap;
