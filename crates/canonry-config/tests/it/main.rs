//! Tests of the settings file: what is published, which mistakes are reported, and properties of all files.

mod mistakes;
mod properties;
mod published;
