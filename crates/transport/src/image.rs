//! The pages of the program's own file.
#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "the system is told which addresses to unmap")
)]

/// A multiple of every page size.
#[cfg(target_os = "linux")]
const PAGE_BYTES_MAX: usize = 64 * 1024;

/// Unmaps the program's code and constants. What runs from now on is mapped again, from the memory in which the system
/// keeps the file. A start runs code all over the program, and the system maps sixteen pages for each that is used:
/// together three quarters of the program.
#[cfg(target_os = "linux")]
pub fn unmap_program() {
    unsafe extern "C" {
        // The beginning of the program in memory, and the end of its code. Only their addresses have a meaning.
        safe static __executable_start: u8;
        safe static etext: u8;
    }
    let start = (&raw const __executable_start).addr();
    let start = start.next_multiple_of(PAGE_BYTES_MAX);
    let end = (&raw const etext).addr();
    let bytes = (end / PAGE_BYTES_MAX * PAGE_BYTES_MAX).saturating_sub(start);
    let start = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: the pages between these symbols are headers, constants and code: parts of the program's file that are
    // mapped without a right to write. Constants with relocated addresses are behind the code. So each page has the same
    // contents when it is mapped again.
    let _ = unsafe { libc::madvise(start, bytes, libc::MADV_DONTNEED) };
}

#[cfg(not(target_os = "linux"))]
pub fn unmap_program() {}
