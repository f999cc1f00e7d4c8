//! Messages that own nothing: most of what a realm sends borrows all that it says, but what is passed on beside it.

use std::mem;

use crosstie_wamp::Message;

/// Drops a message, if some of it is its own. Whoever makes one knows what is in it; the code that drops any message looks for what
/// it is and what each part owns, which takes 28 instructions of each.
#[inline(always)]
pub(crate) fn end(message: Message<'_>, owns: bool) {
    if owns {
        drop_owned(message);
    } else {
        mem::forget(message);
    }
}

#[cold]
#[inline(never)]
fn drop_owned(message: Message<'_>) {
    drop(message);
}
