//! A WAMP client for tokio: connect by URL; call, register, publish and subscribe.
//!
//! ```
//! use crosstie_client::{Client, args};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let node = crosstie_node::test_node()?;
//! # let url = node.url();
//! // Such as "ws://127.0.0.1:8080/ws".
//! let client = Client::connect(url).await?;
//!
//! client
//!     .register("com.example.greet", |invocation| async move {
//!         Ok(args!["hello"; from = invocation.procedure()])
//!     })
//!     .await?;
//! let greeting = client.call("com.example.greet", ()).await?;
//! println!("{}", greeting.argument::<String>(0)?);
//!
//! let mut news = client.subscribe("com.example.news").await?;
//! # let publisher = Client::connect(url).await?;
//! # publisher.publish("com.example.news", ("it works",)).await?;
//! while let Some(event) = news.next().await {
//!     println!("{:?}", event.arguments.args()?);
//!     # break;
//! }
//! # drop(news);
//! # publisher.leave().await;
//! # client.leave().await;
//! # Ok(())
//! # }
//! ```
//!
//! A [`Config`] has more options than a URL: realm, serializers, TLS, bounds, reconnection. Every queue has a bound and
//! a documented policy at the bound; every error names the party that erred.
//!
//! | for | see |
//! |---|---|
//! | identities | [`Config::authenticator`]: [`Ticket`], [`WampCra`], [`Scram`], [`Cryptosign`] |
//! | TLS | [`Config::tls`]: authorities, the client's certificate |
//! | reconnection | [`Config::reconnect`], [`Client::lifecycle`] |
//! | types of the application | the feature `serde` and its module `serde` |
//! | tests | `crosstie_node::test_node`, a router in the test's process |
//!
//! Inside, the session is a state machine without IO; one task for each client moves its bytes:
//!
//! ```text
//! Client, Call, Subscription … ──lock──▶ session ─▶ out-queue ──┐
//!                                          ▲                   ▼ task
//! handlers, streams, futures ◀── channels ─┴─ decoder ◀─── read, write ◀──▶ router
//! ```
//!
//! The module [`pipe`] gives access to the router's messages themselves.

#![deny(missing_docs)]

/// The README's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod arguments;
mod authenticator;
mod call;
mod client;
mod config;
mod connection;
mod convert;
mod deliver;
mod dial;
mod drive;
mod endpoint;
mod error;
mod event;
mod handler;
mod handshake;
mod incoming;
mod interrupt;
mod invocation;
mod join;
mod keepalive;
mod lifecycle;
mod outgoing;
mod peer;
pub mod pipe;
mod registration;
mod restore;
#[cfg(feature = "serde")]
pub mod serde;
mod session;
mod shared;
mod subscription;
mod trust;
mod waiter;
mod welcome;
mod writer;

pub use arguments::{ArgumentError, Arguments, JsonError};
pub use authenticator::{
    Anonymous, AuthenticateError, Authenticator, Challenge, Cryptosign, Scram, Signature, Ticket,
    WampCra,
};
pub use call::{Call, CallOptions, CallReply};
pub use client::Client;
pub use config::{Backoff, Config, TlsOptions};
pub use convert::{Binary, FromValue, IntoValue};
pub use dial::tls_config;
pub use endpoint::{Address, Endpoint, Transport, UrlError};
pub use error::{
    ApplicationError, CallError, ConnectError, Disconnected, ProgressError, PublishError,
    RegisterError, SubscribeError, Unsendable,
};
pub use event::Event;
pub use interrupt::{Interrupt, Interrupts};
pub use invocation::{Invocation, Progress};
pub use lifecycle::{Lifecycle, LifecycleEvent, Listener};
pub use peer::Peer;
pub use registration::{OnInterrupt, RegisterOptions, Registration};
pub use shared::State;
pub use subscription::{SubscribeOptions, Subscription};
pub use welcome::Welcome;

pub use crosstie_auth::wamp::SigningKey;
pub use crosstie_wamp::{
    CancelMode, Dict, InvocationPolicy, MatchPolicy, PublicationId, PublishOptions, Receivers,
    Serializer, SessionId, Value,
};
