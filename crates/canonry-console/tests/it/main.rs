//! The console as a browser asks for it: pages, forms, refusals.

mod admin;
mod items;
mod learning;
mod plans;
mod reading;
mod reviews;
mod templates;
mod world;
