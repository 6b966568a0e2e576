//! Decides which is newer: the known item or a record about it.

use jiff::{SignedDuration, Timestamp};

use crate::{Item, ItemRecord};

/// Canonry records its own changes to an item within minutes, unless GitHub fails in between. A record that is older
/// than this limit may describe an earlier close.
const NOTED_WITHIN: SignedDuration = SignedDuration::from_hours(1);

/// The order of a record relative to the known item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordOrder {
    Later,
    Earlier,
    /// The record contradicts the known item, and it is unclear which of the two is current.
    Unclear,
}

/// Orders a record and the known item.
///
/// A page of a list may be stored long after GitHub wrote it, and webhooks arrive in any order, so only GitHub's own
/// time of the last change can decide. In three cases it cannot:
///
/// - GitHub's times are whole seconds. If an item is labelled and closed within one second, two records have the same
///   time.
/// - Canonry closed or reopened the item itself, and GitHub has not yet returned the time of that change (`updated_at`
///   is unknown). A record that shows the new state is later, unless it is much older. A record that shows the former
///   state may be from before.
/// - The item left its repository. That changes no time, so a record of the item may be from before.
///
/// A file has no source that could be asked again: in the same second, the file counts as what a person wants.
pub(crate) fn record_order(known: &Item, record: &ItemRecord) -> RecordOrder {
    let Some(told) = record.updated_at else { return RecordOrder::Later };
    if record.synced_at.is_none() {
        let is_earlier = known.updated_at.or(known.last_synced_at).is_some_and(|at| told < at);
        return if is_earlier { RecordOrder::Earlier } else { RecordOrder::Later };
    }
    let may_be_stale = match known.updated_at {
        Some(at) if told < at => return RecordOrder::Earlier,
        Some(at) => told == at && is_told_otherwise(known, record),
        None => {
            let is_long_ago = |at: Timestamp| at.duration_since(told) > NOTED_WITHIN;
            differs(record.state.as_ref(), &known.state) || known.last_synced_at.is_some_and(is_long_ago)
        }
    };
    let is_githubs = known.last_synced_at.is_some();
    if is_githubs && (may_be_stale || known.gone.is_some()) { RecordOrder::Unclear } else { RecordOrder::Later }
}

/// Whether a record contradicts the known item in a fact that people decide and that Canonry acts on. The number of
/// comments is not such a fact: each comment has a webhook of its own.
fn is_told_otherwise(known: &Item, record: &ItemRecord) -> bool {
    record.title != known.title
        || differs(record.body.as_ref(), &known.body)
        || differs(record.state.as_ref(), &known.state)
        || differs(record.state_reason.as_ref(), &known.state_reason)
        || differs(record.merged.as_ref(), &known.merged)
        || differs(record.draft.as_ref(), &known.draft)
        || differ_in_some(record.labels.as_deref(), &known.labels)
        || known.has_milestone.is_some_and(|known| differs(record.has_milestone.as_ref(), &known))
        || known.locked.is_some_and(|known| differs(record.locked.as_ref(), &known))
        || known.assignees.as_ref().is_some_and(|known| differ_in_some(record.assignees.as_deref(), known))
        || matches!((record.closed_at.flatten(), known.closed_at), (Some(told), Some(known)) if told != known)
}

/// Whether the source gives a value that differs from the known one.
fn differs<T: PartialEq>(told: Option<&T>, known: &T) -> bool {
    told.is_some_and(|told| told != known)
}

/// Like `differs`, for a list whose order does not matter.
fn differ_in_some<T: PartialEq>(told: Option<&[T]>, known: &[T]) -> bool {
    told.is_some_and(|told| told.len() != known.len() || told.iter().any(|one| !known.contains(one)))
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

    use super::{RecordOrder, record_order};
    use crate::{
        GoneReason, Item, ItemNumber, ItemRecord, ItemState, ItemType, OutcomeKind, RecordChange, StateReason,
        discovered_event, merge_answer, merge_record,
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_000 + second)
    }

    fn told(state: ItemState, second: i64) -> ItemRecord {
        let closed = state == ItemState::Closed;
        ItemRecord {
            body: Some(String::new()),
            state: Some(state),
            state_reason: Some(closed.then_some(StateReason::Duplicate)),
            labels: Some(Vec::new()),
            updated_at: Some(at(second)),
            closed_at: Some(closed.then(|| at(second))),
            synced_at: Some(at(second + 1)),
            ..ItemRecord::new(ItemType::Issue, ItemNumber::new(7).expect("valid"), "It stops")
        }
    }

    fn known(state: ItemState, second: i64) -> Item {
        merge_record(None, told(state, second)).item
    }

    #[test]
    fn githubs_time_decides_and_its_seconds_leave_doubts() {
        use ItemState::{Closed, Open};
        use RecordOrder::{Earlier, Later, Unclear};
        let closed = known(Closed, 5);
        assert_eq!(record_order(&closed, &told(Open, 4)), Earlier);
        assert_eq!(record_order(&closed, &told(Open, 6)), Later);
        assert_eq!(record_order(&closed, &told(Closed, 5)), Later);
        assert_eq!(record_order(&closed, &told(Open, 5)), Unclear);
        let labelled = ItemRecord { labels: Some(vec!["bug".into()]), ..told(Closed, 5) };
        assert_eq!(record_order(&closed, &labelled), Unclear);
        let commented = ItemRecord { comments: Some(3), ..told(Closed, 5) };
        assert_eq!(record_order(&closed, &commented), Later);
        // A record without a field does not contradict that field.
        let silent = ItemRecord { state: None, state_reason: None, closed_at: None, ..told(Open, 5) };
        assert_eq!(record_order(&closed, &silent), Later);
    }

    #[test]
    fn what_canonry_did_itself_is_not_undone_by_what_was_read_before() {
        use ItemState::{Closed, Open};
        let own = Item { updated_at: None, closed_at: None, ..known(Closed, 5) };
        for second in [4, 5, 6] {
            assert_eq!(record_order(&own, &told(Open, second)), RecordOrder::Unclear, "{second}");
            let labelled = ItemRecord { labels: Some(vec!["possible-duplicate".into()]), ..told(Closed, second) };
            assert_eq!(record_order(&own, &labelled), RecordOrder::Later, "{second}");
        }
        // The item had been closed earlier, too.
        assert_eq!(record_order(&own, &told(Closed, -4_000)), RecordOrder::Unclear);
    }

    #[test]
    fn what_left_comes_back_only_by_an_answer() {
        let gone = Item { gone: Some(GoneReason::Deleted), ..known(ItemState::Open, 5) };
        for second in [5, 9] {
            let merged = merge_record(Some(&gone), told(ItemState::Open, second));
            assert_eq!((merged.change, merged.item), (RecordChange::Unordered, gone.clone()), "{second}");
        }
        let back = merge_answer(Some(&gone), Some(&gone), told(ItemState::Open, 5)).item;
        assert_eq!(back.gone, None);
    }

    #[test]
    fn a_file_of_the_same_second_is_taken_and_an_older_one_is_not() {
        let file = |second| ItemRecord { synced_at: None, ..told(ItemState::Open, second) };
        let closed = known(ItemState::Closed, 5);
        assert_eq!(record_order(&closed, &file(5)), RecordOrder::Later);
        assert_eq!(record_order(&closed, &file(4)), RecordOrder::Earlier);
        // The item that Canonry closed was last fetched one second later.
        let own = Item { updated_at: None, ..closed };
        assert_eq!(record_order(&own, &file(5)), RecordOrder::Earlier);
        assert_eq!(record_order(&own, &file(6)), RecordOrder::Later);
        // GitHub's record replaces that of a file.
        let imported = merge_record(None, file(5)).item;
        assert_eq!(record_order(&imported, &told(ItemState::Closed, 5)), RecordOrder::Later);
    }

    #[test]
    fn an_answer_counts_only_while_nobody_else_has_told_anything() {
        let (open, closed) = (known(ItemState::Open, 5), known(ItemState::Closed, 5));
        let answer = || told(ItemState::Open, 5);
        let stays = merge_answer(Some(&closed), Some(&open), answer());
        assert_eq!((stays.change, stays.item), (RecordChange::Unordered, closed.clone()));
        let reopened = merge_answer(Some(&closed), Some(&closed), answer());
        assert_eq!((reopened.change, reopened.item.state), (RecordChange::Updated { content: false }, ItemState::Open));
        // A lagging replica gives no new information.
        assert_eq!(merge_answer(Some(&closed), Some(&closed), told(ItemState::Open, 4)).change, RecordChange::Older);
    }

    /// One step of a simulation with readers of GitHub and writers of the store.
    #[derive(Debug, Clone)]
    enum Step {
        /// The item changes, this many seconds after the last change.
        Happens { after: i64, what: What },
        /// A process reads the item: a webhook's payload or a page of a list.
        Read { slot: usize },
        /// A process reads the known item, and then asks GitHub.
        Ask { slot: usize },
        /// The record or the answer is stored.
        Store { slot: usize },
    }

    #[derive(Debug, Clone, Copy)]
    enum What {
        Turns,
        Labelled,
        Edited,
    }

    const SLOTS: usize = 4;

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let what = prop_oneof![3 => Just(What::Turns), 1 => Just(What::Labelled), 1 => Just(What::Edited)];
        let happens = (prop_oneof![3 => Just(0_i64), 1 => 1..3_i64], what);
        let step = prop_oneof![
            2 => happens.prop_map(|(after, what)| Step::Happens { after, what }),
            2 => (0..SLOTS).prop_map(|slot| Step::Read { slot }),
            1 => (0..SLOTS).prop_map(|slot| Step::Ask { slot }),
            3 => (0..SLOTS).prop_map(|slot| Step::Store { slot }),
        ];
        proptest::collection::vec(step, 1..60)
    }

    /// One record of the item, and for an answer the known item at the time of the request.
    #[derive(Clone)]
    struct Word {
        moment: usize,
        record: ItemRecord,
        asked: Option<Option<Item>>,
    }

    /// GitHub, the store, and the records on their way from one to the other.
    struct Play {
        moments: Vec<ItemRecord>,
        known: Option<Item>,
        latest: usize,
        words: Vec<Option<Word>>,
        reads: i64,
        reopenings: usize,
    }

    impl Play {
        fn new() -> Self {
            let moments = vec![told(ItemState::Open, 0)];
            Self { moments, known: None, latest: 0, words: vec![None; SLOTS], reads: 0, reopenings: 0 }
        }

        fn happens(&mut self, after: i64, what: What) {
            let last = self.moments.last().expect("one at least").clone();
            let second = last.updated_at.expect("told") + SignedDuration::from_secs(after);
            let mut next = ItemRecord { updated_at: Some(second), ..last };
            match what {
                What::Turns => {
                    let closes = next.state == Some(ItemState::Open);
                    next.state = Some(if closes { ItemState::Closed } else { ItemState::Open });
                    next.state_reason = Some(closes.then_some(StateReason::Duplicate));
                    next.closed_at = Some(closes.then_some(second));
                }
                What::Labelled => next.labels.get_or_insert_default().push("bug".to_owned()),
                What::Edited => next.body.iter_mut().for_each(|body| body.push('.')),
            }
            self.moments.push(next);
        }

        fn read(&mut self, slot: usize, asked: Option<Option<Item>>) {
            self.reads += 1;
            let moment = self.moments.len() - 1;
            let record = ItemRecord { synced_at: Some(at(10_000 + self.reads)), ..self.moments[moment].clone() };
            self.words[slot] = Some(Word { moment, record, asked });
        }

        /// Stores a record. Returns the change, and whether the store went back in time.
        fn store(&mut self, slot: usize) -> Option<(RecordChange, bool)> {
            let word = self.words[slot].clone()?;
            let merged = match &word.asked {
                Some(seen) => merge_answer(self.known.as_ref(), seen.as_ref(), word.record),
                None => merge_record(self.known.as_ref(), word.record),
            };
            let repo = "o/n".parse().expect("valid");
            let event = discovered_event(&repo, self.known.as_ref(), &merged.item, at(0));
            self.reopenings += usize::from(event.is_some_and(|event| event.kind == OutcomeKind::Reopened));
            let is_taken = matches!(merged.change, RecordChange::Inserted | RecordChange::Updated { .. });
            let goes_back = is_taken && self.known.is_some() && word.moment < self.latest;
            if is_taken || merged.change == RecordChange::Unchanged {
                self.latest = self.latest.max(word.moment);
            }
            self.known = Some(merged.item);
            Some((merged.change, goes_back))
        }

        fn true_reopenings(&self) -> usize {
            let states = self.moments.windows(2);
            states.filter(|pair| pair[0].state != pair[1].state && pair[1].state == Some(ItemState::Open)).count()
        }
    }

    proptest! {
        /// For any order of reads and stores: the store never goes back in time, finds no reopening that nobody made,
        /// and a single request brings it up to date.
        #[test]
        fn the_store_never_goes_back_in_time(steps in steps()) {
            let mut play = Play::new();
            for step in steps {
                match step {
                    Step::Happens { after, what } => play.happens(after, what),
                    Step::Read { slot } => play.read(slot, None),
                    Step::Ask { slot } => play.read(slot, Some(play.known.clone())),
                    Step::Store { slot } => {
                        let stored = play.store(slot);
                        prop_assert!(!stored.is_some_and(|(_, goes_back)| goes_back), "{stored:?}");
                    }
                }
            }
            prop_assert!(play.reopenings <= play.true_reopenings());
            play.read(0, Some(play.known.clone()));
            play.store(0);
            let (known, truth) = (play.known.expect("stored"), play.moments.last().expect("one").clone());
            prop_assert_eq!(Some(known.state), truth.state);
            prop_assert_eq!((Some(known.labels), Some(known.body)), (truth.labels, truth.body));
        }

        /// A record that was merged is not older than the merged item.
        #[test]
        fn what_was_taken_in_is_never_unclear(closed in any::<bool>(), second in 0..9_i64, known_second in 0..9_i64) {
            let state = if closed { ItemState::Closed } else { ItemState::Open };
            let merged = merge_record(Some(&known(ItemState::Open, known_second)), told(state, second));
            if matches!(merged.change, RecordChange::Updated { .. } | RecordChange::Unchanged) {
                prop_assert_eq!(record_order(&merged.item, &told(state, second)), RecordOrder::Later);
            }
        }
    }
}
