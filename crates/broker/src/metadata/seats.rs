//! Connections and channels as the limits of vhosts and users count them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

/// The seats that are taken. A client takes one before it enters its vhost, so that no two clients take the last one.
#[derive(Clone, Default)]
pub(crate) struct Seats(Arc<Mutex<Taken>>);

/// By vhost and by user. Those without connections have no entry.
#[derive(Default)]
struct Taken {
    vhosts: BTreeMap<Arc<str>, usize>,
    users: BTreeMap<Arc<str>, OfUser>,
}

#[derive(Default)]
struct OfUser {
    connections: usize,
    channels: Arc<AtomicUsize>,
}

/// Maximum numbers of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeatsMax {
    pub(crate) of_vhost: Option<usize>,
    pub(crate) of_user: Option<usize>,
}

/// The limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Vhost(usize),
    User(usize),
}

/// A connection that counts until it is left or dropped.
pub(crate) struct Seat {
    seats: Seats,
    user: Arc<str>,
    vhost: Arc<str>,
    /// Open channels of this connection, and of all of the user.
    channels: AtomicUsize,
    channels_of_user: Arc<AtomicUsize>,
    is_left: AtomicBool,
}

impl Seats {
    /// Takes a seat, unless a limit is reached.
    pub(crate) fn take(
        &self,
        user: &Arc<str>,
        vhost: &Arc<str>,
        max: SeatsMax,
    ) -> Result<Seat, Full> {
        let mut taken = self.0.lock();
        let in_vhost = taken.vhosts.get(vhost).copied().unwrap_or_default();
        if let Some(max) = max.of_vhost.filter(|max| in_vhost >= *max) {
            return Err(Full::Vhost(max));
        }
        let of_user = taken.users.get(user).map_or(0, |found| found.connections);
        if let Some(max) = max.of_user.filter(|max| of_user >= *max) {
            return Err(Full::User(max));
        }
        Ok(self.add(&mut taken, user, vhost))
    }

    /// Takes a seat whatever the limits.
    pub(crate) fn take_any(&self, user: &Arc<str>, vhost: &Arc<str>) -> Seat {
        self.add(&mut self.0.lock(), user, vhost)
    }

    fn add(&self, taken: &mut Taken, user: &Arc<str>, vhost: &Arc<str>) -> Seat {
        *taken.vhosts.entry(Arc::clone(vhost)).or_default() += 1;
        let of_user = taken.users.entry(Arc::clone(user)).or_default();
        of_user.connections += 1;
        Seat {
            seats: self.clone(),
            user: Arc::clone(user),
            vhost: Arc::clone(vhost),
            channels: AtomicUsize::new(0),
            channels_of_user: Arc::clone(&of_user.channels),
            is_left: AtomicBool::new(false),
        }
    }
}

impl Seat {
    /// Counts another channel, unless the user has that many.
    pub(crate) fn open_channel(&self, max: Option<usize>) -> Result<(), usize> {
        let max = max.unwrap_or(usize::MAX);
        let more = |channels| (channels < max).then_some(channels + 1);
        let counted =
            self.channels_of_user
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        counted.map_err(|_| max)?;
        self.channels.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// A channel that was counted is closed.
    pub(crate) fn close_channel(&self) {
        self.channels.fetch_sub(1, Ordering::Relaxed);
        self.channels_of_user.fetch_sub(1, Ordering::Relaxed);
    }

    /// Open channels of this connection.
    pub(crate) fn channels(&self) -> usize {
        self.channels.load(Ordering::Relaxed)
    }

    /// The connection with its channels counts no more.
    pub(crate) fn leave(&self) {
        if self.is_left.swap(true, Ordering::Relaxed) {
            return;
        }
        let channels = self.channels.swap(0, Ordering::Relaxed);
        self.channels_of_user.fetch_sub(channels, Ordering::Relaxed);
        let mut taken = self.seats.0.lock();
        if let Some(of_vhost) = taken.vhosts.get_mut(&self.vhost) {
            *of_vhost -= 1;
            if *of_vhost == 0 {
                taken.vhosts.remove(&self.vhost);
            }
        }
        if let Some(of_user) = taken.users.get_mut(&self.user) {
            of_user.connections -= 1;
            if of_user.connections == 0 {
                taken.users.remove(&self.user);
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_counts_until_it_is_left_and_no_two_clients_take_the_last() {
        let seats = Seats::default();
        let [al, bo, v, w] = ["al", "bo", "v", "w"].map(Arc::<str>::from);
        let max = |of_vhost, of_user| SeatsMax { of_vhost, of_user };
        let take = |user, vhost, max| seats.take(user, vhost, max);
        let full = |user, vhost, max| take(user, vhost, max).err();
        let first = take(&al, &v, max(Some(1), None)).expect("is free");
        // The first has not entered yet.
        assert_eq!(full(&bo, &v, max(Some(1), None)), Some(Full::Vhost(1)));
        assert_eq!(full(&al, &w, max(None, Some(1))), Some(Full::User(1)));
        let second = take(&al, &w, max(None, Some(2))).expect("is free");
        assert_eq!(first.open_channel(Some(2)), Ok(()));
        assert_eq!(second.open_channel(Some(2)), Ok(()));
        assert_eq!(second.open_channel(Some(2)), Err(2));
        assert_eq!(second.open_channel(None), Ok(()));
        second.close_channel();
        assert_eq!(second.channels(), 1);
        // A handle to the peer may outlive the connection.
        second.leave();
        assert_eq!(first.open_channel(Some(2)), Ok(()));
        drop(second);
        drop(take(&bo, &w, max(Some(1), Some(1))));
        drop(first);
        let taken = seats.0.lock();
        assert!(taken.vhosts.is_empty() && taken.users.is_empty());
    }
}
