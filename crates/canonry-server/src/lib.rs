#![doc = include_str!("../README.md")]

mod back_off;
mod handler;
mod health;
mod intake;
mod replay;
mod serve;
mod sorting;
mod worker;

pub use handler::{Handled, JobError, JobHandler, NoHandlers, Work};
pub use replay::{ReplayError, replay};
pub use serve::{Served, ServiceOptions, serve};
pub use worker::{Ended, Worker};
