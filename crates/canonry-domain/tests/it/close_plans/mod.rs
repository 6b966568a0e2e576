//! Clusters and close plans through the crate's front door.

mod conformance;
mod properties;
mod world;
