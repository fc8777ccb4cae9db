//! What is its default nearly everywhere: most routes have no policies, and most backends change no headers. Such a value takes
//! a word here instead of its own size, in each of ten thousand routes.

use std::{
    fmt,
    hash::{Hash, Hasher},
    ops::{Deref, DerefMut},
};

/// A type with a default that can be borrowed for ever.
pub trait StaticDefault: Default + PartialEq + 'static {
    /// The default.
    fn static_default() -> &'static Self;
}

/// A value that is mostly its default. It is used as the value itself; equality, hash and debug output are those of the value.
#[derive(Clone)]
pub struct OrDefault<T>(Option<Box<T>>);

impl<T> Default for OrDefault<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: StaticDefault> From<T> for OrDefault<T> {
    fn from(value: T) -> Self {
        Self((value != *T::static_default()).then(|| Box::new(value)))
    }
}

impl<T: StaticDefault> Deref for OrDefault<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or_else(|| T::static_default())
    }
}

impl<T: StaticDefault> DerefMut for OrDefault<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: StaticDefault> PartialEq for OrDefault<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_none() && other.0.is_none() || **self == **other
    }
}

impl<T: StaticDefault + Eq> Eq for OrDefault<T> {}

impl<T: StaticDefault + Hash> Hash for OrDefault<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<T: StaticDefault + fmt::Debug> fmt::Debug for OrDefault<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl StaticDefault for u64 {
        fn static_default() -> &'static Self {
            &0
        }
    }

    #[test]
    fn it_is_the_value_however_it_came_about() {
        let mut value = OrDefault::<u64>::default();
        assert_eq!((*value, format!("{value:?}")), (0, "0".to_owned()));
        assert!(OrDefault::from(0).0.is_none());
        *value = 7;
        assert_eq!(value, 7.into());
        assert_ne!(value, OrDefault::default());
        *value = 0;
        assert_eq!(value, OrDefault::default());
        assert_eq!(size_of_val(&value), size_of::<usize>());
    }
}
