//! Channels and connections with more work than one input does.

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

    /// A connection takes messages again. Returns whether the caller has to line up its groups; not if they are being
    /// lined up in parts already.
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

    /// Leaves the rest of the groups for later.
    pub(crate) fn resume_later(&mut self, key: ConnectionKey) {
        if let Some(resuming) = self.connections.find_mut(key) {
            resuming.is_resuming = true;
            self.resuming.push_back(key);
        }
    }
}
