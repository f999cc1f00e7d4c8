//! Child processes of workers, and the components in them.

use super::Json;

/// Options of a child process that hosts components.
#[derive(Clone, Debug, PartialEq)]
pub struct NativeOptions {
    /// The name that process lists show.
    pub title: Option<String>,
    /// The interpreter; by default one beside the node's program, or on `PATH`.
    pub python: Option<String>,
    /// Prepended to the interpreter's module path; relative to the node's directory.
    pub pythonpath: Vec<String>,
    pub cpu_affinity: Vec<usize>,
    pub environment: ChildEnvironment,
    /// Components share a dictionary.
    pub exposes_shared: bool,
    /// Returned to components on request.
    pub extra: Json,
}

/// The environment variables of a child process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildEnvironment {
    pub inherit: Inherit,
    /// Variables to set or replace.
    pub variables: Vec<(String, String)>,
}

/// The variables that a child inherits from the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inherit {
    All,
    /// All but those that supply secrets of the configuration.
    AllButSecrets,
    /// Those that programs need to run; none that may hold a secret.
    Usual,
    None,
    Only(Vec<String>),
}

/// One Autobahn|Python component.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    pub id: String,
    pub kind: ComponentKind,
    pub realm: String,
    /// The role of a router's component.
    pub role: Option<String>,
    /// The checked object as written, with variables replaced, for the host of components.
    pub definition: Json,
}

/// The code of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ComponentKind {
    Class { classname: String },
    Function,
}

/// The standard input of a guest.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum GuestInput {
    /// Closed.
    Close,
    /// One value in JSON, and then the end unless `close` is false.
    Json { value: Json, close: bool },
}
