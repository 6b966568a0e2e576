//! The duplicate map, clusters and stories of items: who sees what, who may rule, and what is told.

mod clusters;
mod first_sentences;
mod readers;
mod ruling;
mod setting;
mod stories;
