//! Attributes that few messages have.

use std::fmt;

/// A box that is mostly empty: one word for the messages without it. It is freed out of their way, so that dropping one of
/// them costs a test and no registers (a CALL and its answer took 17 instructions more with `Option<Box<_>>`).
pub struct Seldom<T: ?Sized>(Option<Box<T>>);

impl<T: ?Sized> Seldom<T> {
    pub const NONE: Self = Self(None);

    #[inline]
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    #[inline]
    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }

    #[inline]
    pub fn as_deref(&self) -> Option<&T> {
        self.0.as_deref()
    }
}

impl<T: Default> Seldom<T> {
    /// The content, created if absent.
    pub fn get_or_insert_default(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: ?Sized> Drop for Seldom<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(it) = self.0.take() {
            free(it);
        }
    }
}

#[cold]
#[inline(never)]
fn free<T: ?Sized>(it: Box<T>) {
    drop(it);
}

impl<T: ?Sized> Default for Seldom<T> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<T: ?Sized> Clone for Seldom<T>
where
    Box<T>: Clone,
{
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: ?Sized + PartialEq> PartialEq for Seldom<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T: ?Sized + Eq> Eq for Seldom<T> {}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Seldom<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> From<T> for Seldom<T> {
    fn from(it: T) -> Self {
        Self(Some(Box::new(it)))
    }
}

impl<T: ?Sized> From<Option<Box<T>>> for Seldom<T> {
    fn from(it: Option<Box<T>>) -> Self {
        Self(it)
    }
}
