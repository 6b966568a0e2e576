//! The console through a browser's requests: pages, forms, refusals.

mod admin;
mod items;
mod learning;
mod plans;
mod reading;
mod reviews;
mod templates;
mod world;
