//! The console as a browser asks for it: pages, forms, refusals.

mod house;
mod know;
mod map;
mod plans;
mod reading;
mod reviews;
mod setting;
mod templates;
