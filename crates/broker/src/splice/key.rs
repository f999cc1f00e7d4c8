//! The key by which the owner and other nodes authenticate each other.

use ring::hmac;

/// Length of a key, a nonce and a proof.
pub const LENGTH: usize = 32;

/// Created by the owner node for the life of its process; announced to other nodes beside its address.
#[derive(Clone)]
pub struct Key {
    octets: [u8; LENGTH],
}

/// The claim that a proof supports.
#[derive(Clone, Copy)]
pub enum Claim {
    /// Ownership of a vhost.
    Owner,
    /// Membership of the vhost's nodes.
    Node,
}

impl Key {
    pub fn new() -> Result<Self, String> {
        let octets = random()?;
        Ok(Self { octets })
    }

    pub fn parse(text: &str) -> Option<Self> {
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

    pub fn text(&self) -> String {
        let digits = self.octets.iter().map(|octet| format!("{octet:02x}"));
        digits.collect()
    }

    /// Proves knowledge of the key to the peer that sent the nonce `theirs`.
    pub fn prove(&self, claim: Claim, theirs: &[u8], said: &[u8]) -> [u8; LENGTH] {
        let mut proof = [0; LENGTH];
        let tag = hmac::sign(&self.hmac(), &Self::parts(claim, theirs, said));
        proof.copy_from_slice(tag.as_ref());
        proof
    }

    /// Whether the peer that received the nonce `ours` knows the key.
    pub(super) fn is_proven(&self, claim: Claim, ours: &[u8], said: &[u8], proof: &[u8]) -> bool {
        let parts = Self::parts(claim, ours, said);
        hmac::verify(&self.hmac(), &parts, proof).is_ok()
    }

    fn hmac(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.octets)
    }

    /// Parts of fixed length precede the last one, so that different claims never yield the same bytes.
    fn parts(claim: Claim, nonce: &[u8], said: &[u8]) -> Vec<u8> {
        let claim: &[u8] = match claim {
            Claim::Owner => b"crosstie splice, owner",
            Claim::Node => b"crosstie splice, node.",
        };
        [claim, nonce, said].concat()
    }
}

/// A fresh nonce.
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
