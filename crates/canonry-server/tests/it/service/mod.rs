//! The service through HTTP: requests in, rows out.

mod api;
mod draining;
mod examples;
mod exposition_page;
mod handling;
mod lessons;
mod metrics;
mod one_read;
mod outage;
mod publishing;
mod races;
mod recovering;
mod scheduling;
mod syncing;
mod taking_in;
mod working;
