//! Defines the store's own keys.

/// Defines a key type: a number in every table and for every caller.
macro_rules! store_id {
    ($(#[$docs:meta])* $name:ident) => {
        $(#[$docs])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) i64);

        impl $name {
            /// Makes a key from a number that a person entered; it may not exist.
            pub const fn new(id: i64) -> Self {
                Self(id)
            }

            pub const fn get(self) -> i64 {
                self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, formatter)
            }
        }

        impl $crate::engine::rows::Column for $name {
            type RawValue = i64;

            fn from_raw(raw: i64) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
                Ok(Self(raw))
            }
        }
    };
}

pub(crate) use store_id;
