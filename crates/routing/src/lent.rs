//! Messages that own nothing: most of the realm's messages borrow everything but their passed-on attributes.

use std::mem::ManuallyDrop;

use crosstie_wamp::Message;

/// Drops a message that may own something, which its creator knows. The others are not dropped: the generic drop looks up
/// the kind and the owned fields, which takes 28 instructions per message.
#[cold]
#[inline(never)]
pub(crate) fn drop_owned(message: ManuallyDrop<Message<'_>>) {
    drop(ManuallyDrop::into_inner(message));
}
