//! The serializers from outside: tables of messages, random ones, and other people's libraries as the oracle.

mod malformed;
mod messages;
mod oracle;
mod properties;
mod readable;
mod transcode;
mod undefined;
