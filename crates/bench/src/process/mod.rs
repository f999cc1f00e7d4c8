//! The processes of a bench: started, placed, told what to do, listened to, and ended in good order.

pub(crate) mod descriptors;
pub(crate) mod directory;
pub(crate) mod place;
pub(crate) mod stop;
pub(crate) mod worker;
pub(crate) mod workers;
