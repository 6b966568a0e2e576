//! The canonical of each cluster member, stored between runs.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::{ItemNumber, ItemType};
use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::corpus::items::NUMBERS_PER_STATEMENT;
use crate::corpus::repos::RepoId;
use crate::duplicates::candidate_sets::Representation;
use crate::engine::facets::DuplicateStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{micros, number};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};

const READ: &str = "SELECT item_number, canonical_number FROM canonicals
    WHERE repo_id = $1 AND type = $2 AND representation = $3";

#[boxed]
impl DuplicateStore<'_> {
    pub async fn canonicals(
        self,
        repo: RepoId,
        item_type: ItemType,
        representation: Representation,
    ) -> Result<BTreeMap<ItemNumber, ItemNumber>, StoreError> {
        let rows: Vec<(i64, i64)> = on_pool!(self.pool, |db| {
            let query = sqlx::query_as(READ).bind(repo.0).bind(item_type.as_str());
            query.bind(representation.as_str()).fetch_all(db).await?
        });
        read(rows)
    }

    /// Replaces the whole mapping. Members whose canonical does not change keep its start time.
    pub async fn set_canonicals(
        self,
        repo: RepoId,
        item_type: ItemType,
        representation: Representation,
        canonicals: &BTreeMap<ItemNumber, ItemNumber>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(repo).await?;
        let rows: Vec<(i64, i64)> = on_tx!(&mut tx, |db| {
            let query = sqlx::query_as(READ).bind(repo.0).bind(item_type.as_str());
            query.bind(representation.as_str()).fetch_all(db).await?
        });
        let known = read(rows)?;
        let gone: Vec<ItemNumber> = known.keys().filter(|item| !canonicals.contains_key(item)).copied().collect();
        let changed: Vec<(ItemNumber, ItemNumber)> = canonicals
            .iter()
            .filter(|(item, canonical)| known.get(item) != Some(canonical))
            .map(|(item, canonical)| (*item, *canonical))
            .collect();
        let place = Place { repo, item_type, representation };
        for batch in gone.chunks(NUMBERS_PER_STATEMENT) {
            place.forget(&mut tx, batch).await?;
        }
        for batch in changed.chunks(NUMBERS_PER_STATEMENT) {
            place.write(&mut tx, batch, now).await?;
        }
        tx.commit().await
    }
}

fn read(rows: Vec<(i64, i64)>) -> Result<BTreeMap<ItemNumber, ItemNumber>, StoreError> {
    rows.into_iter().map(|(item, canonical)| Ok((number(item)?, number(canonical)?))).collect()
}

#[derive(Clone, Copy)]
struct Place {
    repo: RepoId,
    item_type: ItemType,
    representation: Representation,
}

impl Place {
    async fn forget(self, tx: &mut Transaction, items: &[ItemNumber]) -> Result<(), StoreError> {
        on_tx!(tx, |db| {
            let mut query = QueryBuilder::new("DELETE FROM canonicals WHERE repo_id = ");
            query.push_bind(self.repo.0).push(" AND type = ").push_bind(self.item_type.as_str());
            query.push(" AND representation = ").push_bind(self.representation.as_str()).push(" AND item_number IN (");
            query.push_list(items.iter().map(|item| item.get()));
            query.build().execute(db).await?;
        });
        Ok(())
    }

    async fn write(
        self,
        tx: &mut Transaction,
        canonicals: &[(ItemNumber, ItemNumber)],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        on_tx!(tx, |db| {
            let mut query = QueryBuilder::new(
                "INSERT INTO canonicals (repo_id, type, representation, item_number, canonical_number, since) ",
            );
            query.push_values(canonicals, |mut row, (item, canonical)| {
                row.push_bind(self.repo.0)
                    .push_bind(self.item_type.as_str())
                    .push_bind(self.representation.as_str())
                    .push_bind(item.get())
                    .push_bind(canonical.get())
                    .push_bind(micros(now));
            });
            query.push(
                " ON CONFLICT (repo_id, type, representation, item_number) \
                DO UPDATE SET canonical_number = excluded.canonical_number, since = excluded.since",
            );
            query.build().execute(db).await?;
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use canonry_domain::{ItemNumber, ItemType};
    use canonry_testkit::database::TestDatabase;
    use canonry_testkit::on_both_engines;
    use jiff::Timestamp;

    use crate::{Representation, Store};

    on_both_engines! {
        async fn a_canonical_that_stays_keeps_its_time(database: TestDatabase) {
            let at = |second| Timestamp::from_second(second).expect("in range");
            let number = |number| ItemNumber::new(number).expect("a number");
            let store = Store::open(&database.url().parse().expect("a URL"), at(0)).await.expect("opens");
            let repo = store.repos().ensure(&"tide/pool".parse().expect("a name"), at(0)).await.expect("stored").id;
            for (second, canonical_of_two) in [(1, 1), (2, 1), (3, 2)] {
                let mapping = BTreeMap::from([(number(1), number(1)), (number(2), number(canonical_of_two))]);
                store.duplicates().set_canonicals(repo, ItemType::Issue, Representation::Raw, &mapping, at(second)).await.expect("written");
            }
            let since: Vec<(i64, i64)> = crate::engine::transaction::on_pool!(&store.pool, |db| {
                sqlx::query_as("SELECT item_number, since FROM canonicals ORDER BY item_number").fetch_all(db).await.expect("reads")
            });
            assert_eq!(since, [(1, 1_000_000), (2, 3_000_000)]);
            store.disconnect().await;
        }
    }
}
