//! oslo.messaging's RPC over AMQP 0-9-1, from both sides: what Python services and their clients say
//! to each other through a broker, said by a native server and a native client.
//!
//! [`Connection`] is a blocking AMQP connection that a load driver can be built on: writes are corked
//! until something is waited for, reads come in large chunks, what arrives is borrowed from them, so
//! that a round trip costs one system call each way. [`RpcServer`] and [`RpcClient`] stand on it and
//! speak oslo.messaging's wire format.
//!
//! Never: a broker's own code; it is measured and used by URL like any other.

mod connection;
mod identifier;
mod python;
mod rpc;
mod url;

pub use crosstie_joints::{
    Call, EnvelopeError, RemoteFailure, Reply, Request, RequestText, read_reply, read_request,
};

pub use connection::{Connection, ConnectionError, ConnectionOptions, Content, Event, Mechanism};
pub use identifier::Identifiers;
pub use python::python_repr;
pub use rpc::{
    CallError, Endpoint, Incoming, Outcome, Reconnect, RpcClient, RpcServer, SendOptions,
    ServerError, Stop, Target, TestEndpoint,
};
pub use url::{Host, TransportUrl, UrlError};
