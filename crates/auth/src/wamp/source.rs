//! The source of a method's principals: the configuration, or an authenticator.

use std::sync::Arc;

use super::Authenticator;

/// The source of the principals that clients authenticate as.
#[derive(Clone, Debug, PartialEq)]
pub enum Source<P> {
    Static {
        principals: Arc<P>,
        default_role: Option<Arc<str>>,
    },
    Dynamic(Authenticator),
}

/// The configured principals of a method. Public as the bound of a public type, and not exported.
pub trait Principals {
    /// Every authid, with the role of its own if it has one.
    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Option<&str>)> + '_>;

    /// The parts of a principal's credential, its role among them.
    fn credential(&self, authid: &str) -> Option<Vec<Vec<u8>>>;
}

/// A method's configured principals, and the role of those without one.
pub(super) type Configured<'m> = (&'m dyn Principals, Option<&'m Arc<str>>);

impl<P: Principals> Source<P> {
    pub(super) fn authenticator(&self) -> Option<&Authenticator> {
        match self {
            Self::Static { .. } => None,
            Self::Dynamic(authenticator) => Some(authenticator),
        }
    }

    /// `None` if an authenticator knows the principals.
    pub(super) fn configured(&self) -> Option<Configured<'_>> {
        match self {
            Self::Static {
                principals,
                default_role,
            } => Some((&**principals, default_role.as_ref())),
            Self::Dynamic(_) => None,
        }
    }
}
