//! Tests of clusters and close plans through the crate's public interface.

mod conformance;
mod properties;
mod world;
