//! A future that is made on its thread.

use std::pin::Pin;
use std::task::{Context, Poll};

/// A future, in the place of the function that makes it. An `async` block would hold both for as long as it runs.
pub(super) enum Begun<B, F> {
    Not(Option<B>),
    Running(F),
}

impl<B, F> Begun<B, F> {
    pub(super) fn new(begin: B) -> Self {
        Self::Not(Some(begin))
    }
}

impl<B, F> Future for Begun<B, F>
where
    B: FnOnce() -> Option<F> + Unpin,
    F: Future<Output = ()> + Unpin,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if let Self::Not(begin) = this {
            match begin.take().and_then(|begin| begin()) {
                Some(future) => *this = Self::Running(future),
                None => return Poll::Ready(()),
            }
        }
        match this {
            Self::Running(future) => Pin::new(future).poll(cx),
            Self::Not(_) => Poll::Ready(()),
        }
    }
}
