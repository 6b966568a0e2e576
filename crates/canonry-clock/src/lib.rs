#![doc = include_str!("../README.md")]

mod back_off;
mod clock;

pub use back_off::BackOff;
pub use clock::{Clock, ManualClock, ScaledClock, SystemClock};
