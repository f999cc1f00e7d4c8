//! The processes of a bench: started, placed, told what to do, listened to, and ended in good order.

pub mod crew;
pub mod descriptors;
pub mod directory;
pub mod place;
pub mod stop;
pub mod worker;
