//! Masking: every byte of a client's payload is combined with one of four key bytes.

/// Masks or unmasks `bytes` in place; the first one is the payload's `offset`th.
/// RFC 6455 section 5.3.
#[inline]
pub(super) fn apply(bytes: &mut [u8], key: [u8; 4], offset: usize) {
    let key = u32::from_ne_bytes(key);
    // The key byte for the first byte comes first in memory, whatever the byte order.
    let turned = match cfg!(target_endian = "little") {
        true => key.rotate_right(8 * (offset as u32 & 3)),
        false => key.rotate_left(8 * (offset as u32 & 3)),
    };
    let wide = u64::from(turned) << 32 | u64::from(turned);
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(wide.to_ne_bytes()) {
        *byte ^= key;
    }
}
