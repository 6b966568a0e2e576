//! Learning, adjudication and audits: what the pages say about a store that knows something, to whom, and what they keep.

mod adjudication;
mod audits;
mod learning;
mod readers;
mod setting;
