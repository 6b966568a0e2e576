//! A cache of recently read token vectors, limited in bytes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use canonry_domain::{ItemNumber, TokenVectors};

/// A cache that drops the least recently used entries.
pub(crate) struct TokenVectorCache {
    limit: usize,
    bytes: usize,
    uses: u64,
    kept: HashMap<ItemNumber, CachedTokens>,
    by_use: BTreeMap<u64, ItemNumber>,
}

struct CachedTokens {
    used: u64,
    tokens: Arc<TokenVectors>,
}

/// The approximate size of an entry in addition to its codes.
const ENTRY: usize = 160;

impl TokenVectorCache {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, bytes: 0, uses: 0, kept: HashMap::new(), by_use: BTreeMap::new() }
    }

    /// The approximate size of its entries.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.shrink();
    }

    pub(crate) fn remove(&mut self, number: ItemNumber) {
        if let Some(gone) = self.kept.remove(&number) {
            self.by_use.remove(&gone.used);
            self.bytes -= size(&gone.tokens);
        }
    }

    pub(crate) fn get(&mut self, number: ItemNumber) -> Option<Arc<TokenVectors>> {
        let kept = self.kept.get_mut(&number)?;
        self.by_use.remove(&kept.used);
        self.uses += 1;
        kept.used = self.uses;
        self.by_use.insert(kept.used, number);
        Some(Arc::clone(&kept.tokens))
    }

    pub(crate) fn put(&mut self, number: ItemNumber, tokens: Arc<TokenVectors>) {
        self.uses += 1;
        self.bytes += size(&tokens);
        let kept = CachedTokens { used: self.uses, tokens };
        self.by_use.insert(kept.used, number);
        if let Some(before) = self.kept.insert(number, kept) {
            self.by_use.remove(&before.used);
            self.bytes -= size(&before.tokens);
        }
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.bytes > self.limit {
            let Some((_, oldest)) = self.by_use.pop_first() else { return };
            if let Some(gone) = self.kept.remove(&oldest) {
                self.bytes -= size(&gone.tokens);
            }
        }
    }
}

fn size(tokens: &TokenVectors) -> usize {
    tokens.codes().len() + ENTRY
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use canonry_domain::{ItemNumber, TokenVectors};
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    use super::{ENTRY, TokenVectorCache, size};

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("valid")
    }

    fn tokens(rows: usize) -> Arc<TokenVectors> {
        Arc::new(TokenVectors::new(32, vec![1; 32 * rows]).expect("whole rows"))
    }

    #[test]
    fn what_was_used_last_stays() {
        let mut cache = TokenVectorCache::new(2 * (ENTRY + 32));
        cache.put(number(1), tokens(1));
        cache.put(number(2), tokens(1));
        assert_eq!(cache.get(number(1)), Some(tokens(1)));
        cache.put(number(3), tokens(1));
        assert_eq!([1, 2, 3].map(|of| cache.get(number(of)).is_some()), [true, false, true]);
        // Too large for the cache: everything else was dropped in vain, and later entries find room again.
        cache.put(number(4), tokens(1_000));
        assert_eq!([1, 3, 4].map(|of| cache.get(number(of)).is_some()), [false; 3]);
        cache.put(number(5), tokens(1));
        assert!(cache.get(number(5)).is_some());
    }

    proptest! {
        #[test]
        fn it_is_bounded_and_holds_what_was_used_last(
            limit in 0_usize..4_000,
            steps in prop::collection::vec((1_i64..12, 0_usize..20, prop::bool::ANY), 1..200),
        ) {
            let mut cache = TokenVectorCache::new(limit);
            // The items in the order of their last use, with their rows.
            let mut model: VecDeque<(i64, usize)> = VecDeque::new();
            for (of, rows, puts) in steps {
                let known = model.iter().position(|(number, _)| *number == of);
                if puts {
                    cache.put(number(of), tokens(rows));
                    known.and_then(|place| model.remove(place));
                    model.push_back((of, rows));
                } else {
                    prop_assert_eq!(cache.get(number(of)), known.map(|place| tokens(model[place].1)));
                    let used = known.and_then(|place| model.remove(place));
                    model.extend(used);
                }
                let bytes = |model: &VecDeque<(i64, usize)>| model.iter().map(|(_, rows)| size(&tokens(*rows))).sum::<usize>();
                while bytes(&model) > limit {
                    model.pop_front();
                }
                prop_assert!(cache.bytes <= limit);
                prop_assert_eq!((cache.bytes, cache.kept.len(), cache.by_use.len()), (bytes(&model), model.len(), model.len()));
            }
        }
    }
}
