//! The duplicate map, clusters and items: who sees what, and who may rule.

mod clusters;
mod evidence;
mod first_sentences;
mod item_page;
mod readers;
mod rulings;
