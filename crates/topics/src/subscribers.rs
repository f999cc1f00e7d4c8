//! The subscribers of one filter.

use crosstie_mqtt::{Options, QoS, RetainHandling};

use crate::few::Few;

/// A session's subscription, as it is kept with the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subscriber {
    /// The index of a session that lives: a session that ends removes its subscriptions first.
    pub(crate) session: u32,
    /// The subscription identifier; 0 if there is none.
    pub(crate) identifier: u32,
    pub(crate) options: PackedOptions,
}

/// Subscription options in the octet of SUBSCRIBE (section 3.8.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedOptions(u8);

pub(crate) type Subscribers = Few<Subscriber>;

impl PackedOptions {
    pub(crate) fn of(options: Options) -> Self {
        let handling = options.retain_handling as u8;
        let flags = u8::from(options.no_local) << 2 | u8::from(options.retain_as_published) << 3;
        Self(options.qos.octet() | flags | handling << 4)
    }

    /// None if no SUBSCRIBE can have them.
    pub(crate) fn from_octet(octet: u8) -> Option<Self> {
        let packed = Self(octet);
        let is_valid = octet & 3 < 3 && octet >> 4 < 3;
        is_valid.then_some(packed)
    }

    pub(crate) fn octet(self) -> u8 {
        self.0
    }

    #[inline]
    pub(crate) fn qos(self) -> QoS {
        QoS::from_octet(self.0 & 3).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn no_local(self) -> bool {
        self.0 & 4 != 0
    }

    #[inline]
    pub(crate) fn retain_as_published(self) -> bool {
        self.0 & 8 != 0
    }

    pub(crate) fn unpack(self) -> Options {
        Options {
            qos: self.qos(),
            no_local: self.no_local(),
            retain_as_published: self.retain_as_published(),
            retain_handling: match self.0 >> 4 {
                0 => RetainHandling::Always,
                1 => RetainHandling::New,
                _ => RetainHandling::Never,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_packed_as_on_the_wire() {
        let mut valid = 0;
        for octet in 0..=u8::MAX {
            if let Some(packed) = PackedOptions::from_octet(octet & 0x3f) {
                assert_eq!(PackedOptions::of(packed.unpack()), packed);
                valid += usize::from(octet < 0x40);
            }
        }
        assert_eq!(valid, 3 * 4 * 3);
        assert_eq!(PackedOptions::from_octet(3), None);
    }

    #[test]
    fn a_subscriber_is_small() {
        assert_eq!(size_of::<Subscriber>(), 12);
        assert_eq!(size_of::<Subscribers>(), 24);
    }
}
