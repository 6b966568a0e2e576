//! `show`: the verdict on one item, and everything behind it.

pub(crate) mod grace;
pub(crate) mod item;
pub(crate) mod judgement;
pub(crate) mod learning;

pub(crate) use item::{Args, find, run};
