//! Nkeys: Ed25519 keys in NATS' notation, base32 with a checksum.
//!
//! A library for them brings 23 packages, some of them second versions of present ones; the code here is forty lines.

use std::fmt;

/// Why a text is not a user's seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSeed(&'static str);

impl fmt::Display for NoSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for NoSeed {}

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The kind in the first bytes: a seed, a user.
const SEED: u8 = 18 << 3;
const USER: u8 = 20 << 3;

const SEED_BYTES: usize = 32;

/// The private half of a user's key, from a text that begins with `SU`.
pub fn read_user_seed(text: &str) -> Result<[u8; SEED_BYTES], NoSeed> {
    let octets = from_base32(text).ok_or(NoSeed("it is not base32"))?;
    let (octets, check) = octets
        .split_last_chunk::<2>()
        .ok_or(NoSeed("it is too short"))?;
    if crc16(octets) != u16::from_le_bytes(*check) {
        return Err(NoSeed("its check is wrong"));
    }
    // Two bytes contain two kinds: five bits of the first, then eight of the second.
    let [first, second, seed @ ..] = octets else {
        return Err(NoSeed("it is too short"));
    };
    let kind = (first & 0b111) << 5 | (second & 0b1111_1000) >> 3;
    if first & 0b1111_1000 != SEED || kind != USER {
        return Err(NoSeed("it is not a user's"));
    }
    seed.try_into()
        .map_err(|_| NoSeed("it is not 32 octets long"))
}

/// The private half of a user's key, which begins with `SU`.
pub fn write_user_seed(seed: &[u8; SEED_BYTES]) -> String {
    checked(vec![SEED | USER >> 5, (USER & 0b1_1111) << 3], seed)
}

/// The public half of a user's key, which begins with `U`.
pub fn write_user(public: &[u8; 32]) -> String {
    checked(vec![USER], public)
}

/// Encodes the kind, the key and their checksum.
fn checked(mut octets: Vec<u8>, key: &[u8; 32]) -> String {
    octets.extend_from_slice(key);
    let check = crc16(&octets);
    octets.extend_from_slice(&check.to_le_bytes());
    to_base32(&octets)
}

fn from_base32(text: &str) -> Option<Vec<u8>> {
    let mut octets = Vec::with_capacity(text.len() * 5 / 8);
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.bytes() {
        let value = ALPHABET.iter().position(|known| *known == letter)?;
        bits = bits << 5 | value as u32;
        count += 5;
        if count >= 8 {
            count -= 8;
            octets.push((bits >> count) as u8);
        }
        bits &= (1 << count) - 1;
    }
    Some(octets)
}

fn to_base32(octets: &[u8]) -> String {
    let mut text = String::with_capacity(octets.len().div_ceil(5) * 8);
    let (mut bits, mut count) = (0_u32, 0);
    for octet in octets {
        bits = bits << 8 | u32::from(*octet);
        count += 8;
        while count >= 5 {
            count -= 5;
            text.push(char::from(ALPHABET[(bits >> count & 31) as usize]));
        }
        bits &= (1 << count) - 1;
    }
    if count > 0 {
        text.push(char::from(ALPHABET[(bits << (5 - count) & 31) as usize]));
    }
    text
}

/// CRC-16/XMODEM.
fn crc16(octets: &[u8]) -> u16 {
    octets.iter().fold(0, |crc: u16, octet| {
        (0..8).fold(crc ^ u16::from(*octet) << 8, |crc, _| {
            let doubled = crc << 1;
            if crc & 0x8000 == 0 {
                doubled
            } else {
                doubled ^ 0x1021
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of NATS' documentation.
    #[test]
    fn keys_are_read_and_written() {
        let seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
        assert_eq!(
            read_user_seed(seed).map(|seed| seed[..4].to_vec()),
            Ok(vec![0x29, 0x49, 0x7b, 0xa0])
        );
        let octets = read_user_seed(seed).expect("it is a seed");
        assert_eq!(write_user_seed(&octets), seed);
        let user = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
        let octets = from_base32(user).expect("it is base32");
        let public = octets[1..33].try_into().expect("32 octets");
        assert_eq!(write_user(&public), user);
        for (wrong, why) in [
            (
                "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VA",
                "its check is wrong",
            ),
            ("SU0", "it is not base32"),
            ("", "it is too short"),
        ] {
            assert_eq!(read_user_seed(wrong), Err(NoSeed(why)), "{wrong}");
        }
    }
}
