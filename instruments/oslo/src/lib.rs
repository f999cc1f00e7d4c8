//! oslo.messaging's RPC over AMQP 0-9-1, from both sides: a native server and a native client with the wire format of
//! Python services.
//!
//! [`Connection`] is a blocking AMQP connection for load drivers. Writes are buffered until a wait, reads are large,
//! and events are borrowed from the read buffer, so that a round trip costs one system call each way. [`RpcServer`] and
//! [`RpcClient`] add oslo.messaging's wire format.
//!
//! Never: a broker's own code; brokers are measured and used by URL like any other.

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
