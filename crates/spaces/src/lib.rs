//! MQTT in this router; realms' conversations and the broker's are built alike.
//!
//! ```text
//! listen ─▶ conversation (one per connection: CONNECT, packets)
//!                │ a request of the client's own session (talk)     ┌────────────────────────────┐
//!                ├──────────────────────────────────────────────────▶ the realm: permissions     │
//!                │ a message that is permitted                      │                            │
//!                ▼                                                  └──┬─────────────────────────┘
//!           space (one lock) ─▶ outbox ─▶ clients' queues              │ events of WAMP clients
//!                ▲                                                     ▼
//!                └──────────────────────────────── bridge (a session of the space's own)
//! ```
//!
//! A space is the home of the topics of one realm. Messages pass between MQTT clients inside the space; the realm decides
//! on each, and passes it to WAMP clients and other nodes.

mod awaited_auth;
mod bridge;
mod client;
mod conversation;
mod crossing;
mod durable;
mod event;
mod events;
mod figures;
mod frames;
mod ground;
mod home;
mod interest;
mod login;
mod names;
mod open;
mod outbox;
mod own_content;
mod payloads;
mod places;
mod reauthentication;
mod replay;
mod replays;
mod scram;
mod space;
mod spaces;
mod subscribing;
mod talk;
mod trace;
mod will;

pub use conversation::{Conversation, End, State, Step};
pub use crosstie_mqtt::PacketType;
pub use crosstie_topics::Counts;
pub use durable::{SpaceStore, SpaceStoreStatus};
pub use figures::{Dropped, Figures};
pub use frames::{Frames, write_framed};
pub use home::Home;
pub use login::check as check_connect;
pub use spaces::{MqttListener, Spaces};
pub use subscribing::filters_at_once;
