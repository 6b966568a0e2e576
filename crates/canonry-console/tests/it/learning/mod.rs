//! Learning, adjudication and audits: what the pages show, to whom, and what they keep.

mod adjudication;
mod audits;
mod readers;
mod thresholds;
