//! Integration tests of the store, on both engines.

mod closing;
mod cluster_pages;
mod console;
mod database_file;
mod decisions;
mod embeddings;
mod fixtures;
mod future_times;
mod home_and_search;
mod intent_cards;
mod jobs;
mod knowing;
mod late_words;
mod learning;
mod mentions;
mod outbox;
mod plan_pages;
mod portable_copy;
mod pulls;
mod records;
mod reviews;
mod service;
mod story;
mod token_vectors;
