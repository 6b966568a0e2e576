//! The emulated GitHub: its state is plain data ([`World`]), served over HTTP on loopback ([`Emulator`]).

mod issues;
mod people;
mod pulls;
mod repos;
mod serve;

pub use issues::*;
pub use people::*;
pub use pulls::*;
pub use repos::*;
pub use serve::*;

mod world;

pub use world::{Comment, Gone, Issue, Label, Milestone, State, World};
