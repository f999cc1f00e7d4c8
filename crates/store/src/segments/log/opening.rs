//! Goes on with the files that an earlier process has left.

use std::io;

use crosstie_disk::Disk;

use super::super::keeper::{SPARES, Spare};
use super::super::manifest::{Listed, Manifest};
use super::super::segment::{number_in, segment_name};
use super::super::state::{Segment, State};
use super::Open;

/// Has the manifest name the segments that are complete; the open one is behind its last.
pub(super) fn list(
    manifest: &mut Manifest,
    state: &State,
    (number_last, next_sequence): (u32, u64),
    open: Option<(u32, u64)>,
) {
    let complete = number_last.saturating_sub(open.iter().len() as u32);
    manifest.last = manifest.last.max(complete);
    let open_first = open.and_then(|(number, _)| state.segments.get(&number));
    let end_sequence = open_first.map_or(next_sequence, |open| open.first_sequence);
    manifest.end_sequence = manifest.end_sequence.max(end_sequence);
    manifest.segments.clear();
    for (number, segment) in &state.segments {
        if segment.is_complete {
            manifest.list(*number, segment);
        }
    }
}

/// The segments of zeros that an earlier process has left; others than the keeper would make are removed.
pub(super) fn spares(disk: &dyn Disk, segment_bytes: u64) -> io::Result<Vec<Spare>> {
    let mut spares = Vec::new();
    for name in disk.names("")? {
        if let Some(number) = number_in(&name, ".spare") {
            let bytes = disk.open_to_read(&name)?.bytes()?;
            match bytes == segment_bytes && spares.len() < SPARES {
                true => spares.push(Spare { number, bytes }),
                false => disk.remove(&name)?,
            }
        }
    }
    Ok(spares)
}

/// Writes the manifest, on a full disk in the space of spares. Without space the former one stays, which is as right as
/// before unless the new one names a loss.
pub(super) fn write(
    disk: &dyn Disk,
    manifest: &Manifest,
    (is_accepting, mends): (bool, bool),
    spares: &mut Vec<Spare>,
) -> io::Result<()> {
    while let Err(error) = manifest.write(disk) {
        let is_full = error.kind() == io::ErrorKind::StorageFull;
        // A spare may be the only room for records that are to be written again.
        let spare = if mends { None } else { spares.pop() };
        match spare.filter(|_| is_full) {
            Some(spare) => disk.remove(&spare.name())?,
            None if is_full && (mends || !is_accepting) => break,
            None => return Err(error),
        }
    }
    Ok(())
}

/// Continues a segment. What a commit left behind that was never whole is cut off. The process before may have been
/// killed before it had synced its last commit, which counts from now on.
pub(super) fn reopen(
    disk: &dyn Disk,
    number: u32,
    end: u64,
    segment_bytes: u64,
) -> io::Result<Open> {
    let file = disk.open(&segment_name(number))?;
    let bytes = file.bytes()?;
    let mut window = vec![0; 64 << 10];
    let mut at = end;
    while at < bytes {
        let count = file.read_at(&mut window, at)?;
        if window[..count].iter().any(|byte| *byte != 0) {
            file.set_bytes(end)?;
            break;
        }
        at += count.max(1) as u64;
    }
    file.sync()?;
    Ok(Open {
        number,
        capacity: file.bytes()?.max(segment_bytes),
        file,
        end,
        is_spoiled: false,
    })
}

impl Manifest {
    pub(super) fn list_missing(&mut self, missing: Vec<Listed>) {
        self.segments.extend(missing);
        self.segments.sort_by_key(|listed| listed.number);
    }

    fn list(&mut self, number: u32, segment: &Segment) {
        self.segments.push(Listed {
            number,
            first_sequence: segment.first_sequence,
            end_sequence: segment.end_sequence,
        });
    }
}
