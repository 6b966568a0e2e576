#![doc = include_str!("../README.md")]

mod change;
mod feedback;
mod findings;
pub mod output;
mod publication;
mod referee;
pub mod reviewers;
mod run;

pub use change::*;
pub use feedback::*;
pub use findings::*;
pub use publication::*;
pub use referee::*;
pub use run::*;
