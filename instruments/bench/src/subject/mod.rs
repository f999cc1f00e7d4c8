//! A subject: its name, its address, and a router or server that a bench starts itself.

pub(crate) mod case;
pub(crate) mod options;
pub(crate) mod router;
pub(crate) mod routers;
pub(crate) mod server;
pub(crate) mod target;

pub(crate) use case::{Case, Socket, Transport, serializer_name};
pub(crate) use crosstie_wan::{Endpoint, ParseError};
pub(crate) use options::RoutersOptions;
pub(crate) use router::{REALM, Router, RouterOptions, Waiting, node_configuration};
pub(crate) use routers::{Reachable, Routers};
pub(crate) use server::{NodeDirectory, ServerProcess, guarded, own_program};
pub(crate) use target::{Target, Url};

/// The names of an enum's values on the command line and in results files, each once; then the error for any other
/// word.
macro_rules! names {
    ($type:ty { $($variant:ident = $name:literal),+ } $expected:literal) => {
        impl $type {
            #[allow(dead_code, reason = "not every enum is gone through")]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::subject::ParseError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(Self::Err::new(text, $expected)),
                }
            }
        }
    };
}

pub(crate) use names;
