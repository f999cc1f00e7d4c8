//! How far to read at once: records that follow each other closely together, and others one by one.
//!
//! A queue whose messages came interleaved with those of many others has a record here and there. Read with all that lies
//! between them, 1 MB of such a queue among a hundred would be 100 MB.

/// The ends of the groups of records that are read together.
#[derive(Debug)]
pub(super) struct Reach(Vec<u64>);

/// A gap between the beginnings of two records that is read, because a further read takes about as long.
const GAP_BYTES_MAX: u32 = 32 << 10;

/// Bytes that are read of the last record of a group. The rest of a longer one is another read.
const LAST_BYTES: u64 = 4 << 10;

impl Reach {
    /// Of the records at these offsets.
    pub(super) fn of(mut offsets: Vec<u32>) -> Self {
        offsets.sort_unstable();
        let groups = offsets.chunk_by(|one, next| next - one <= GAP_BYTES_MAX);
        let lasts = groups.filter_map(<[u32]>::last);
        Self(lasts.map(|last| u64::from(*last) + LAST_BYTES).collect())
    }

    /// The end of what is read with the record at one of the offsets.
    pub(super) fn end(&self, offset: u32) -> u64 {
        let group = self.0.partition_point(|end| *end <= offset.into());
        self.0.get(group).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_with_long_gaps_are_read_one_by_one() {
        let far = 2 * GAP_BYTES_MAX;
        let offsets = [200, 64, 3 * far, far, far + GAP_BYTES_MAX, 64];
        let lasts = [
            200,
            200,
            3 * far,
            far + GAP_BYTES_MAX,
            far + GAP_BYTES_MAX,
            200,
        ];
        let reach = Reach::of(offsets.to_vec());
        for (offset, last) in offsets.into_iter().zip(lasts) {
            assert_eq!(reach.end(offset), u64::from(last) + LAST_BYTES, "{offset}");
        }
    }
}
