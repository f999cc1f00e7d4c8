//! Counts the connections of each address, so that one peer cannot take all of them.

use std::collections::HashMap;
use std::net::IpAddr;

use crosstie_auth::Origin;
use crosstie_transport::PeerAddress;
use parking_lot::Mutex;
use slab::Slab;

/// The connections of a router, by address.
#[derive(Default)]
pub(crate) struct Addresses {
    counted: Mutex<Counted>,
}

#[derive(Default)]
struct Counted {
    places: HashMap<Address, u32>,
    counts: Slab<(Address, u32)>,
}

/// The address that connections are counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Address {
    V4([u8; 4]),
    /// A network of 64 bits: a host with one such address has all of them.
    V6([u8; 8]),
    /// All clients of this machine's Unix sockets.
    Unix,
}

/// The entry of an address, while it has connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressPlace(u32);

impl Addresses {
    /// Counts a connection. Returns how many its address had before.
    pub(crate) fn count_in(&self, peer: PeerAddress) -> (AddressPlace, u32) {
        let address = Address::of(peer);
        let mut counted = self.counted.lock();
        let Counted { places, counts } = &mut *counted;
        // A `u32` can count all connections.
        let place = *places
            .entry(address)
            .or_insert_with(|| counts.insert((address, 0)) as u32);
        let (_, count) = &mut counts[place as usize];
        let before = *count;
        *count += 1;
        (AddressPlace(place), before)
    }

    /// Uncounts a connection of that entry.
    pub(crate) fn count_out(&self, place: AddressPlace) {
        let mut counted = self.counted.lock();
        let Counted { places, counts } = &mut *counted;
        let place = place.0 as usize;
        let (address, count) = &mut counts[place];
        *count -= 1;
        if *count == 0 {
            places.remove(address);
            counts.remove(place);
        }
        // Memory used at a peak is not kept.
        if places.capacity() > CAPACITY_KEPT_MAX && places.len() < places.capacity() / 8 {
            places.shrink_to(places.len() * 2);
            counts.shrink_to_fit();
        }
    }
}

const CAPACITY_KEPT_MAX: usize = 1024;

impl Address {
    fn of(peer: PeerAddress) -> Self {
        let PeerAddress::Tcp(address) = peer else {
            return Self::Unix;
        };
        match address.ip().to_canonical() {
            IpAddr::V4(address) => Self::V4(address.octets()),
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, g, h, ..] = address.octets();
                Self::V6([a, b, c, d, e, f, g, h])
            }
        }
    }
}

/// The origin of a peer for the limits on guesses.
pub fn origin(peer: PeerAddress) -> Origin {
    match peer {
        PeerAddress::Tcp(address) => Origin::of(address.ip()),
        PeerAddress::Unix(_) => Origin::Local,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> PeerAddress {
        match text.parse() {
            Ok(address) => PeerAddress::Tcp(address),
            Err(_) => PeerAddress::Unix(None),
        }
    }

    #[test]
    fn connections_are_counted_by_address() {
        let addresses = Addresses::default();
        let mut places = Vec::new();
        for (text, expected) in [
            ("10.0.0.1:1", 0),
            ("10.0.0.1:2", 1),
            ("10.0.0.2:1", 0),
            ("[::ffff:10.0.0.1]:1", 2),
            ("[2001:db8::1]:1", 0),
            ("[2001:db8::ffff:1]:1", 1),
            ("[2001:db8:0:1::1]:1", 0),
            ("[::1]:1", 0),
            ("unix", 0),
            ("unix", 1),
        ] {
            let (place, before) = addresses.count_in(peer(text));
            assert_eq!(before, expected, "{text}");
            places.push(place);
        }
        for place in places.drain(..) {
            addresses.count_out(place);
        }
        let counted = addresses.counted.lock();
        assert!(counted.places.is_empty() && counted.counts.is_empty());
    }
}
