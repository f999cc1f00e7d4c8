//! The key of an owner, by which nodes and owners know each other.

use ring::hmac;

/// Octets of a key, a nonce and a proof.
pub(super) const LENGTH: usize = 32;

/// Made by the node that owns a vhost, for as long as it runs; others are told it beside the address.
#[derive(Clone)]
pub(crate) struct Key {
    octets: [u8; LENGTH],
}

/// What is proven by it.
#[derive(Clone, Copy)]
pub(super) enum Claim {
    /// To own a vhost.
    Owner,
    /// To be a node of the vhost.
    Node,
}

impl Key {
    pub(crate) fn new() -> Result<Self, String> {
        let octets = random()?;
        Ok(Self { octets })
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let digit = |at: usize| {
            text.get(at..at + 1)
                .and_then(|d| u8::from_str_radix(d, 16).ok())
        };
        if text.len() != 2 * LENGTH {
            return None;
        }
        let mut octets = [0; LENGTH];
        for (at, octet) in octets.iter_mut().enumerate() {
            *octet = digit(2 * at)? << 4 | digit(2 * at + 1)?;
        }
        Some(Self { octets })
    }

    pub(super) fn text(&self) -> String {
        let digits = self.octets.iter().map(|octet| format!("{octet:02x}"));
        digits.collect()
    }

    /// Proves to who has said `theirs` that the key is known here.
    pub(super) fn prove(&self, claim: Claim, theirs: &[u8], said: &[u8]) -> [u8; LENGTH] {
        let mut proof = [0; LENGTH];
        let tag = hmac::sign(&self.hmac(), &Self::parts(claim, theirs, said));
        proof.copy_from_slice(tag.as_ref());
        proof
    }

    /// Whether who was told `ours` knows the key.
    pub(super) fn is_proven(&self, claim: Claim, ours: &[u8], said: &[u8], proof: &[u8]) -> bool {
        let parts = Self::parts(claim, ours, said);
        hmac::verify(&self.hmac(), &parts, proof).is_ok()
    }

    fn hmac(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.octets)
    }

    /// Parts of fixed lengths before the last one: no two claims are the same octets.
    fn parts(claim: Claim, nonce: &[u8], said: &[u8]) -> Vec<u8> {
        let claim: &[u8] = match claim {
            Claim::Owner => b"crosstie splice, owner",
            Claim::Node => b"crosstie splice, node.",
        };
        [claim, nonce, said].concat()
    }
}

/// A nonce that nobody has seen.
pub(super) fn random() -> Result<[u8; LENGTH], String> {
    let mut octets = [0; LENGTH];
    getrandom::fill(&mut octets).map_err(|e| format!("the system gives no random bytes: {e}"))?;
    Ok(octets)
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}
