//! Grace periods against the emulated GitHub, on both engines, with a clock that only the test advances. Human
//! activity before a close ends the grace period, what is closed is closed once, and enough objections stop all
//! automatic closing.

mod age;
mod brakes;
mod cancels;
mod cases;
mod clocks;
mod closes;
mod heeded;
mod kills;
mod refuted;
