//! Erlang's portable hash of terms (`phash2`), by which RabbitMQ's hashing exchanges choose: Bob Jenkins' hash of 1996.
//!
//! A term's hash is the start value of the next one's. The functions here take and return that running value; 0 begins
//! a term.

use crosstie_amqp::{Table, Value};

use super::super::term;

/// The golden ratio. Its multiples tell kinds of terms apart.
const GOLDEN: u32 = 0x9e37_79b9;
const OF_NIL: u32 = GOLDEN.wrapping_mul(2);
const OF_ATOM: u32 = GOLDEN.wrapping_mul(3);
const OF_TUPLE: u32 = GOLDEN.wrapping_mul(9);
const OF_NEGATIVE: u32 = GOLDEN.wrapping_mul(10);
const OF_POSITIVE: u32 = GOLDEN.wrapping_mul(11);
const OF_FLOAT: u32 = GOLDEN.wrapping_mul(12);
const OF_BINARY: u32 = GOLDEN.wrapping_mul(13);

/// The list that ends each list, as a number.
const NIL: u32 = 2;

/// Integers from here on, and their negatives below, are hashed in another form.
const SMALL_END: i128 = 1 << 27;

/// Bits of a hash that `phash2` returns.
const BITS: u32 = 27;

/// The result for a running value.
pub(super) fn phash2(hash: u32) -> u32 {
    hash & ((1 << BITS) - 1)
}

/// A binary.
pub(super) fn bytes(hash: u32, bytes: &[u8]) -> u32 {
    let mut state = [GOLDEN, GOLDEN, hash.wrapping_add(OF_BINARY)];
    if bytes.is_empty() {
        return state[2];
    }
    let mut blocks = bytes.chunks_exact(12);
    for block in &mut blocks {
        for (word, part) in state.iter_mut().zip(block.chunks_exact(4)) {
            *word = word.wrapping_add(little_endian(part));
        }
        mix(&mut state);
    }
    let [a, b, c] = &mut state;
    let mut rest = blocks.remainder().chunks(4);
    let mut next = || rest.next().map_or(0, little_endian);
    *a = a.wrapping_add(next());
    *b = b.wrapping_add(next());
    // Its lowest byte has the length.
    *c = c.wrapping_add(bytes.len() as u32).wrapping_add(next() << 8);
    mix(&mut state);
    state[2]
}

/// The end of a list; its items come before.
pub(super) fn nil(hash: u32) -> u32 {
    match hash {
        0 => EMPTY_LIST,
        hash => numbers(hash, [NIL, 0], OF_NIL),
    }
}

/// The hash of a list without items, by itself.
const EMPTY_LIST: u32 = 3_468_870_702;

/// The atom `undefined`, by itself.
pub(super) fn undefined() -> u32 {
    atom(0, "undefined")
}

/// A field's value as RabbitMQ has it in memory: with its kind, `{longstr, <<"a">>}`.
pub(super) fn typed(hash: u32, value: Value<'_>) -> u32 {
    let hash = atom(tuple(hash, 2), term::kind(value));
    self::value(hash, value)
}

fn value(hash: u32, value: Value<'_>) -> u32 {
    match value {
        Value::Bool(true) => atom(hash, "true"),
        Value::Bool(false) => atom(hash, "false"),
        Value::I8(value) => integer(hash, value.into()),
        Value::U8(value) => integer(hash, value.into()),
        Value::I16(value) => integer(hash, value.into()),
        Value::U16(value) => integer(hash, value.into()),
        Value::I32(value) => integer(hash, value.into()),
        Value::U32(value) => integer(hash, value.into()),
        Value::I64(value) => integer(hash, value.into()),
        Value::Timestamp(value) => integer(hash, value.into()),
        Value::F32(value) => float(hash, value.into()),
        Value::F64(value) => float(hash, value),
        Value::Decimal { scale, value } => {
            let hash = integer(tuple(hash, 2), scale.into());
            integer(hash, value.into())
        }
        Value::LongString(value) | Value::ByteArray(value) => bytes(hash, value),
        Value::Array(array) => nil(array.iter().fold(hash, typed)),
        Value::Table(table) => nil(fields(hash, table)),
        Value::Void => atom(hash, "undefined"),
    }
}

/// A table's fields, each with its name, its kind and its value.
fn fields(hash: u32, table: Table<'_>) -> u32 {
    table.iter().fold(hash, |hash, (name, field)| {
        let hash = bytes(tuple(hash, 3), name.as_bytes());
        value(atom(hash, term::kind(field)), field)
    })
}

/// The whole hash of a binding's arguments, by which the management API names the binding.
pub(super) fn arguments(table: Table<'_>) -> u32 {
    nil(fields(0, table))
}

/// The beginning of a tuple; its parts follow.
fn tuple(hash: u32, parts: u32) -> u32 {
    numbers(hash, [parts, 0], OF_TUPLE)
}

/// An atom, by the sum over its name that Erlang keeps for it (P. J. Weinberger's hash).
fn atom(hash: u32, name: &str) -> u32 {
    let sum = name.bytes().fold(0, |sum: u32, byte| {
        let sum = (sum << 4).wrapping_add(byte.into());
        let high = sum & 0xf000_0000;
        (sum ^ (high >> 24)) & !high
    });
    match hash {
        0 => sum,
        hash => numbers(hash, [sum, 0], OF_ATOM),
    }
}

fn integer(hash: u32, value: i128) -> u32 {
    let size = value.unsigned_abs() as u64;
    let words = [size as u32, (size >> 32) as u32];
    match value {
        // Twice, once as its negative.
        value if (-SMALL_END..0).contains(&value) => {
            let hash = numbers(hash, [words[0], 0], GOLDEN);
            numbers(hash, [value as u32, 0], GOLDEN)
        }
        value if (0..SMALL_END).contains(&value) => numbers(hash, [words[0], 0], GOLDEN),
        value if value < 0 => numbers(hash, words, OF_NEGATIVE),
        _ => numbers(hash, words, OF_POSITIVE),
    }
}

fn float(hash: u32, value: f64) -> u32 {
    // Zero has one sign.
    let bits = (if value == 0.0 { 0.0 } else { value }).to_bits();
    numbers(hash, [(bits >> 32) as u32, bits as u32], OF_FLOAT)
}

fn numbers(hash: u32, [first, second]: [u32; 2], of: u32) -> u32 {
    let mut state = [of.wrapping_add(first), of.wrapping_add(second), hash];
    mix(&mut state);
    state[2]
}

fn little_endian(bytes: &[u8]) -> u32 {
    let bytes = bytes.iter().enumerate();
    bytes.fold(0, |word, (place, byte)| {
        word | u32::from(*byte) << (8 * place)
    })
}

fn mix(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    // Each word less the two others, and then its neighbour's bits, shifted.
    macro_rules! step {
        ($x:ident, $y:ident, $z:ident, $shifted:expr) => {
            $x = $x.wrapping_sub($y).wrapping_sub($z) ^ $shifted;
        };
    }
    step!(a, b, c, c >> 13);
    step!(b, c, a, a << 8);
    step!(c, a, b, b >> 13);
    step!(a, b, c, c >> 12);
    step!(b, c, a, a << 16);
    step!(c, a, b, b >> 5);
    step!(a, b, c, c >> 3);
    step!(b, c, a, a << 10);
    step!(c, a, b, b >> 15);
    *state = [a, b, c];
}

#[cfg(test)]
mod tests {
    use crosstie_amqp::TableBuf;

    use super::*;

    /// The values are those of `erlang:phash2/1` in Erlang/OTP 25.
    #[test]
    fn hashes_are_those_of_erlang() {
        let keys: [(&str, u32); 9] = [
            ("", 13_708_901),
            ("a", 112_802_447),
            ("key-1", 5_452_885),
            ("order-42", 74_888_420),
            ("0123456789ab", 115_360_506),
            ("0123456789abc", 67_923_675),
            ("naïve", 115_356_468),
            ("abcdefgh", 72_227_102),
            ("0123456789abcdefghijklmnopqrstuvwxyz", 91_488_717),
        ];
        for (key, expected) in keys {
            assert_eq!(phash2(bytes(0, key.as_bytes())), expected, "{key:?}");
        }
    }

    #[test]
    fn values_have_their_kind_in_their_hash() {
        let inner = TableBuf::new().with("k", Value::LongString(b"v"));
        let none = TableBuf::new();
        let values = [
            (Value::LongString(b"a"), 65_711_459),
            (Value::LongString(b"5"), 98_812_000),
            (Value::I32(5), 40_839_585),
            (Value::I32(-5), 39_932_925),
            (Value::I8(5), 128_459_157),
            (Value::I64(5), 129_380_108),
            (Value::I64(1 << 32), 62_461_374),
            (Value::I64(-(1 << 32)), 17_742_081),
            (Value::I64((1 << 27) - 1), 33_099_472),
            (Value::I64(1 << 27), 117_666_136),
            (Value::I64(-(1 << 27)), 13_500_176),
            (Value::I64(-(1 << 27) - 1), 132_651_809),
            (Value::I64(i64::MAX), 120_433_834),
            (Value::I64(i64::MIN), 112_631_110),
            (Value::Bool(true), 32_030_443),
            (Value::Bool(false), 54_145_719),
            (Value::Void, 27_077_197),
            (Value::F64(1.5), 115_320_697),
            (Value::F64(0.0), 28_702_447),
            (Value::F64(-0.0), 28_702_447),
            (Value::F64(-2.25e10), 109_625_526),
            (Value::Timestamp(1_700_000_000), 59_280_699),
            (
                Value::Decimal {
                    scale: 2,
                    value: 314,
                },
                113_508_173,
            ),
            (Value::ByteArray(&[1, 2, 3]), 108_323_328),
            (Value::Table(inner.as_table()), 95_356_243),
            (Value::Table(none.as_table()), 80_606_520),
        ];
        for (value, expected) in values {
            assert_eq!(phash2(typed(0, value)), expected, "{value:?}");
        }
        assert_eq!(phash2(undefined()), 45_914_356);
    }
}
