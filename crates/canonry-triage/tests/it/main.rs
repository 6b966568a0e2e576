//! The pipeline over the corpus: against the emulated GitHub, scripted models and real databases.

mod analyze_intent;
mod backtest;
mod close_look;
mod closing;
mod common_errors;
mod ending;
mod grace;
mod index_cache;
mod intent_vectors;
mod pull_changes;
mod recurring_items;
mod retrieval;
mod sync;
mod triage;
mod unfilled_templates;
