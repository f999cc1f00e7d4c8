//! Messages that own nothing: most of what a realm sends borrows all that it says, but what is passed on beside it.

use std::mem::ManuallyDrop;

use crosstie_wamp::Message;

/// A message to be ended by [`Lent::end`]. Whoever makes it knows what is in it; the code that drops any message looks
/// for what it is and what each part owns, which takes 45 instructions of each call's two and of each event.
pub(crate) struct Lent<'m>(ManuallyDrop<Message<'m>>);

impl<'m> Lent<'m> {
    #[inline(always)]
    pub(crate) fn new(message: Message<'m>) -> Self {
        Self(ManuallyDrop::new(message))
    }

    #[inline(always)]
    pub(crate) fn message(&self) -> &Message<'m> {
        &self.0
    }

    /// Drops it, if some of it is its own.
    #[inline(always)]
    pub(crate) fn end(self, owns: bool) {
        if owns {
            drop_owned(self.0);
        }
    }
}

#[cold]
#[inline(never)]
fn drop_owned(message: ManuallyDrop<Message<'_>>) {
    drop(ManuallyDrop::into_inner(message));
}
