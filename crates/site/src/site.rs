//! The tree of a listener's web services.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use crosstie_config::{Web, WebOptions, WebPaths, WebService};

use crate::Service;
use crate::pages::Pages;

/// The services of a listener, by path, and its pages.
pub struct Site {
    /// Absent on a listener for pages alone.
    root: Option<Branch>,
    /// The service of every path, in place of a tree.
    pub(super) whole: Option<Box<dyn Service>>,
    pub(super) options: WebOptions,
    pub(super) pages: Pages,
}

/// For pages alone: as many bytes as a stream has without an option for it.
const UNSENT_BYTES_MAX: usize = 64 * 1024;

/// The services below one component of a path.
struct Branch {
    children: HashMap<String, Node>,
    /// The service for all paths without a child.
    rest: Option<Box<dyn Service>>,
}

/// Creates a service.
type Make<'m> = dyn Fn(&WebService) -> io::Result<Box<dyn Service>> + 'm;

enum Node {
    Branch(Branch),
    Service(Box<dyn Service>),
}

/// The service at a path.
pub(super) struct Found<'s> {
    pub(super) service: &'s dyn Service,
    /// Number of path components that lead to it.
    pub(super) depth: usize,
}

impl Site {
    pub(super) fn new(web: &Web, pages: Pages, make: &Make<'_>) -> io::Result<Self> {
        Ok(Self {
            root: Some(Branch::new(&web.paths, make)?),
            whole: None,
            options: web.options.clone(),
            pages,
        })
    }

    /// The services of a listener with pages only.
    pub fn of_pages(pages: Pages) -> Self {
        Self {
            root: None,
            whole: None,
            options: WebOptions {
                access_log: false,
                hsts_max_age: None,
                client_timeout: Some(PAGES_IDLE_MAX),
                unsent_bytes_max: UNSENT_BYTES_MAX,
            },
            pages,
        }
    }

    /// A service that reads paths itself, as the client sent them.
    pub fn of_service(service: Box<dyn Service>, pages: Pages) -> Self {
        let of_pages = Self::of_pages(pages);
        Self {
            whole: Some(service),
            options: WebOptions {
                client_timeout: None,
                ..of_pages.options
            },
            ..of_pages
        }
    }

    pub(super) fn has_services(&self) -> bool {
        self.root.is_some() || self.whole.is_some()
    }

    /// The service at these components. Children take precedence over the parent's service at `/`.
    pub(super) fn find(&self, components: &[String]) -> Option<Found<'_>> {
        self.root.as_ref()?.find(components, 0)
    }
}

impl AsRef<Pages> for Site {
    fn as_ref(&self) -> &Pages {
        &self.pages
    }
}

/// Timeout of an idle connection to pages.
const PAGES_IDLE_MAX: Duration = Duration::from_secs(30);

impl Branch {
    fn new(paths: &WebPaths, make: &Make<'_>) -> io::Result<Self> {
        let mut branch = Self {
            children: HashMap::new(),
            rest: None,
        };
        for (path, service) in paths {
            let node = match service {
                WebService::Path(below) => Node::Branch(Self::new(below, make)?),
                service => {
                    let at = |e| io::Error::other(format!("web service at \"{path}\": {e}"));
                    Node::Service(make(service).map_err(at)?)
                }
            };
            match (path.as_str(), node) {
                ("/", Node::Service(service)) => branch.rest = Some(service),
                // A nested map at `/` is merged into the map around it.
                ("/", Node::Branch(below)) => {
                    branch.children.extend(below.children);
                    branch.rest = below.rest;
                }
                (_, node) => {
                    branch.children.insert(path.clone(), node);
                }
            }
        }
        Ok(branch)
    }

    fn find(&self, components: &[String], depth: usize) -> Option<Found<'_>> {
        let child = components.get(depth).and_then(|c| self.children.get(c));
        let found = match child {
            Some(Node::Service(service)) => Some(Found {
                service: &**service,
                depth: depth + 1,
            }),
            Some(Node::Branch(below)) => below.find(components, depth + 1),
            None => None,
        };
        found.or_else(|| {
            let service = &**self.rest.as_ref()?;
            Some(Found { service, depth })
        })
    }
}
