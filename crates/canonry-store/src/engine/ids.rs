//! The store's own keys.

/// Defines a key, which is a number in every table and to whoever names it.
macro_rules! store_id {
    ($(#[$docs:meta])* $name:ident) => {
        $(#[$docs])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) i64);

        impl $name {
            /// A number that a person gave; there may be nothing of that number.
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
