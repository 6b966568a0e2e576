//! The settings file: what is published, what is refused, and what always holds.

mod mistakes;
mod properties;
mod published;
