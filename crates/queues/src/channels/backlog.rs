//! Channels and connections that have more to be done than one input does.

use super::Channels;
use crate::{ChannelKey, ConnectionKey};

impl<H> Channels<H> {
    pub(crate) fn has_backlog(&self) -> bool {
        !(self.closing_channels.is_empty()
            && self.closing_connections.is_empty()
            && self.resuming.is_empty())
    }

    pub(crate) fn close_later(&mut self, key: ChannelKey) {
        self.closing_channels.push_back(key);
    }

    pub(crate) fn close_connection_later(&mut self, key: ConnectionKey) {
        self.closing_connections.push_back(key);
    }

    pub(crate) fn next_closing(&mut self) -> Option<ChannelKey> {
        self.closing_channels.pop_front()
    }

    pub(crate) fn next_closing_connection(&mut self) -> Option<ConnectionKey> {
        self.closing_connections.pop_front()
    }

    pub(crate) fn next_resuming(&mut self) -> Option<ConnectionKey> {
        self.resuming.pop_front()
    }

    /// A connection takes messages again. Returns whether its groups are to be lined up: they are
    /// already, if it does that by parts.
    pub(crate) fn resume(&mut self, key: ConnectionKey) -> Option<bool> {
        let resuming = self.connections.find_mut(key).filter(|c| !c.is_closing)?;
        resuming.is_full = false;
        Some(!resuming.is_resuming)
    }

    /// The channels of a connection that resumes: the caller lines up the groups of all.
    pub(crate) fn channels_to_resume(&mut self, key: ConnectionKey) -> Option<Vec<ChannelKey>> {
        let resuming = self.connections.find_mut(key)?;
        resuming.is_resuming = false;
        Some(resuming.channels.clone())
    }

    /// They are not all lined up: the rest is for later.
    pub(crate) fn resume_later(&mut self, key: ConnectionKey) {
        if let Some(resuming) = self.connections.find_mut(key) {
            resuming.is_resuming = true;
            self.resuming.push_back(key);
        }
    }
}
