//! The service through its front door: HTTP in, rows out.

mod draining;
mod taking_in;
mod working;
