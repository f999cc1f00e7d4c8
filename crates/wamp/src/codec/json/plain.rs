//! Runs of a JSON string that need no look at each byte.
#![cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "a loop is compiled twice, and the processor chooses"
    )
)]

/// Bytes that the compiler looks at with vectors.
const BLOCK: usize = 64;

/// Bytes until the first quote, backslash or control character.
#[inline]
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    // Most strings end in the first block, also where much stands behind them.
    match bytes.split_first_chunk::<BLOCK>() {
        None => plain_words(bytes),
        Some((first, rest)) => match plain_words(first) {
            BLOCK => BLOCK + plain_rest(rest),
            plain => plain,
        },
    }
}

/// The same for the rest of a long string.
fn plain_rest(bytes: &[u8]) -> usize {
    let plain = plain_blocks(bytes);
    plain + plain_words(&bytes[plain..])
}

/// Bytes of the first blocks without any of these.
#[cfg(target_arch = "x86_64")]
fn plain_blocks(bytes: &[u8]) -> usize {
    #[target_feature(enable = "avx2")]
    fn wide(bytes: &[u8]) -> usize {
        blocks(bytes)
    }
    match is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the instructions that the function is compiled to. Nothing else is unsafe about it.
        true => unsafe { wide(bytes) },
        false => blocks(bytes),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn plain_blocks(bytes: &[u8]) -> usize {
    blocks(bytes)
}

#[inline(always)]
fn blocks(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let mut plain = 0;
    for block in blocks {
        // A byte of its own for each answer, and no branch: both keep the loop in vectors.
        let special = |byte: u8| u8::from(byte < b' ') | u8::from(byte == b'"' || byte == b'\\');
        if block.iter().fold(0, |any, &byte| any | special(byte)) != 0 {
            break;
        }
        plain += BLOCK;
    }
    plain
}

/// The same as [`plain_length`], eight bytes at a time.
fn plain_words(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return index * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let plain = rest
        .iter()
        .take_while(|&&byte| byte >= b' ' && byte != b'"' && byte != b'\\');
    words.len() * 8 + plain.count()
}

/// The highest bit of the first special byte in `word` is set, and none of an earlier one.
///
/// `(x - 0x01…) & !x & 0x80…` finds zero bytes; a borrow can only spoil bytes above a true one.
fn special_bytes(word: u64) -> u64 {
    const LOWEST: u64 = u64::MAX / 0xff;
    const HIGHEST: u64 = LOWEST * 0x80;
    let quote = word ^ (LOWEST * b'"' as u64);
    let backslash = word ^ (LOWEST * b'\\' as u64);
    let control = word.wrapping_sub(LOWEST * 0x20) & !word;
    let quote = quote.wrapping_sub(LOWEST) & !quote;
    let backslash = backslash.wrapping_sub(LOWEST) & !backslash;
    (quote | backslash | control) & HIGHEST
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte at every place, with every other special byte behind it.
    #[test]
    fn runs_end_at_the_first_special_byte() {
        let special = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
        for byte in 0..=u8::MAX {
            for place in (0..20).chain(60..150) {
                for behind in [b'"', b'\\', 0, 0x1f, b' ', b'x', 0xff] {
                    let mut bytes = vec![b'x'; if place < 20 { 24 } else { 160 }];
                    bytes[place] = byte;
                    bytes[place + 1] = behind;
                    let expected = bytes.iter().position(|&byte| special(byte));
                    assert_eq!(
                        plain_length(&bytes),
                        expected.unwrap_or(bytes.len()),
                        "{bytes:x?}"
                    );
                }
            }
        }
    }

    /// Either form of the loop, whatever this processor has.
    #[test]
    fn blocks_end_before_the_first_special_byte() {
        for place in 0..300 {
            let mut bytes = vec![0xff; 300];
            bytes[place] = b'\\';
            for judge in [blocks, plain_blocks] {
                let plain = judge(&bytes);
                assert_eq!(
                    plain,
                    (place / BLOCK * BLOCK).min(bytes.len() / BLOCK * BLOCK)
                );
            }
        }
    }
}
