//! Graces against the emulated GitHub, on both engines, in a time that only the test moves: whatever people do before a
//! close ends it, what is closed is closed once, and enough objections stop all closing.

mod age;
mod brakes;
mod cancels;
mod cases;
mod clocks;
mod closes;
mod heeded;
mod kills;
