//! What is measured: its name, its address, and a router or server that a bench starts itself.

pub(crate) mod case;
pub(crate) mod cases;
pub(crate) mod router;
pub(crate) mod routers;
pub(crate) mod server;
pub(crate) mod target;

pub(crate) use case::{Case, Socket, Transport, serializer_name};
pub(crate) use crosstie_link::{Endpoint, ParseError};
pub(crate) use router::{REALM, Router, RouterOptions};
pub(crate) use routers::{Reachable, Routers, Wanted};
pub(crate) use server::{ServerProcess, guarded};
pub(crate) use target::{Target, Url};
