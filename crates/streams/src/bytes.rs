//! Numbers in files: little endian.

/// Offsets, times and places are never larger: the next of any that is read is a number, too.
pub(crate) const NUMBER_MAX: u64 = 1 << 62;

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let found = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(found.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let found = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(found.try_into().ok()?))
}

/// Numbers and a checksum of them.
pub(crate) fn sealed<const N: usize>(numbers: [u64; N]) -> Vec<u8> {
    let mut bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let sum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// The numbers, if the checksum is theirs.
pub(crate) fn unsealed<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let numbers = bytes.get(..8 * N)?;
    if crc32fast::hash(numbers) != u32_at(bytes, 8 * N)? {
        return None;
    }
    let mut found = [0; N];
    for (at, number) in found.iter_mut().enumerate() {
        *number = u64_at(numbers, 8 * at)?;
    }
    Some(found)
}
