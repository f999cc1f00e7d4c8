//! Messages that own nothing: most of the realm's messages borrow everything but their passed-on attributes.

use std::mem;

use crosstie_wamp::Message;

/// Drops a message, if it may own something. Its creator knows its kind; the generic drop looks up the kind and the
/// owned fields, which takes 28 instructions per message.
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
