//! oslo.messaging's RPC over AMQP 0-9-1, from both sides: a native server and a native client with the wire format of
//! Python services.
//!
//! [`RpcServer`] and [`RpcClient`] add oslo.messaging's wire format to a blocking AMQP connection.
//!
//! Never: a broker's own code; brokers are measured and used by URL like any other.

mod identifier;
mod python;
mod rpc;

pub use crosstie_joints::{
    Call, EnvelopeError, RemoteFailure, Reply, Request, RequestText, read_reply, read_request,
};

pub use crosstie_amqp_client::{
    Connection, ConnectionError, ConnectionOptions, Content, Event, Host, Mechanism, TransportUrl,
    UrlError,
};
pub use identifier::Identifiers;
pub use python::python_repr;
pub use rpc::{
    CallError, Endpoint, Incoming, Outcome, Reconnect, RpcClient, RpcServer, SendOptions,
    ServerError, Stop, Target, TestEndpoint,
};
