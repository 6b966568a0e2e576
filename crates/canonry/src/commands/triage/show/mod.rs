//! `show`: everything that is known of one item.

pub(crate) mod grace;
mod item;
pub(crate) mod judgement;
pub(crate) mod learning;

pub(crate) use item::{Args, find, run};
