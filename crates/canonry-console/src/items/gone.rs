//! Items that are gone from GitHub: their texts stay stored, and only maintainers see them.

use canonry_domain::{Item, ItemNumber, ItemType};

use crate::layout::errors::PageError;
use crate::sign_in::visit::RepoVisit;

/// Shown to readers instead of a title.
pub(crate) const GONE: &str = "(gone from GitHub)";

impl RepoVisit {
    /// Whether the item's texts are hidden from this reader. People delete what should not be read, and a transferred
    /// item may be in a private repository now.
    pub(crate) fn hides(&self, item: &Item) -> bool {
        item.gone.is_some() && !self.can_maintain()
    }

    /// The stored items with these numbers, without hidden texts.
    pub(crate) async fn items(&self, item_type: ItemType, numbers: &[ItemNumber]) -> Result<Vec<Item>, PageError> {
        let mut items = self.console.store.corpus().items_by_number(self.repo.id, item_type, numbers).await?;
        for item in items.iter_mut().filter(|item| self.hides(item)) {
            GONE.clone_into(&mut item.title);
            item.body.clear();
        }
        Ok(items)
    }

    pub(crate) async fn hide_titles<'a>(
        &self,
        titles: impl Iterator<Item = (ItemNumber, &'a mut String)>,
    ) -> Result<(), PageError> {
        if self.can_maintain() {
            return Ok(());
        }
        // Issues and pull requests share one sequence of numbers.
        let gone = self.console.store.corpus().gone_numbers(self.repo.id).await?;
        for (_, title) in titles.filter(|(number, _)| gone.binary_search(number).is_ok()) {
            GONE.clone_into(title);
        }
        Ok(())
    }
}
