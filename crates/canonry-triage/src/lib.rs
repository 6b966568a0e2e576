#![doc = include_str!("../README.md")]

mod close;
mod corpus;
mod grace;
mod judge;
mod lab;
mod online;
mod retrieval;

pub use close::*;
pub use corpus::*;
pub use grace::*;
pub use judge::*;
pub use lab::*;
pub use online::*;
pub use retrieval::*;
