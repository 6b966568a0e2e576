//! Tests which of two items may be closed as a duplicate of the other: for any history, never the older one.

use canonry_domain::{
    GraceBasis, GraceCandidate, GraceFacts, Item, ItemNumber, ItemRecord, ItemState, ItemType, Login, Maintainers,
    PairItem, Probability, Verdict, grace_end, may_announce_close, may_close_towards, merge_record,
};
use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_assert, prop_oneof, proptest};

const GRACE: i64 = 72;
const BODIES: [&str; 2] = [
    "The exporter writes its summary twice to the console, once at the start and once at the end of each run.",
    "Die Ausgabe der Zusammenfassung erscheint doppelt, einmal am Anfang und einmal am Ende von jedem Lauf, und das stört.",
];

/// One event of a history.
#[derive(Debug, Clone)]
enum Act {
    /// A person opens an item, a copy of an existing one.
    Open { author: usize, body: usize },
    /// An item is edited, so that it is rechecked and called a duplicate of another item.
    Edit { item: usize, of: usize },
    /// A person comments, or a bot, whose comment is not an objection.
    Comment { item: usize, is_bot: bool },
    /// Time passes, and due closes are applied.
    Wait { hours: i64 },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => (0..4usize, 0..2usize).prop_map(|(author, body)| Act::Open { author, body }),
        4 => (0..64usize, 0..64usize).prop_map(|(item, of)| Act::Edit { item, of }),
        2 => (0..64usize, proptest::bool::ANY).prop_map(|(item, is_bot)| Act::Comment { item, is_bot }),
        3 => prop_oneof![Just(1), Just(24), Just(GRACE + 1)].prop_map(|hours| Act::Wait { hours }),
    ]
}

struct Known {
    item: Item,
    own_comments: u32,
    had_a_grace: bool,
}

struct Announced {
    item: usize,
    target: usize,
    due: Timestamp,
    /// The number of people's comments that the item had at that time.
    spoken: u32,
}

#[derive(Default)]
struct Repository {
    now: Timestamp,
    items: Vec<Known>,
    spoken: Vec<u32>,
    waiting: Vec<Announced>,
    closed: Vec<(usize, usize)>,
}

fn login(name: &str) -> Login {
    name.parse().expect("a login")
}

fn maintainers() -> Maintainers {
    [login("maint")].iter().collect()
}

impl Repository {
    fn pair(&self, at: usize) -> PairItem<'_> {
        PairItem { item: &self.items[at].item, own_comments: self.items[at].own_comments }
    }

    fn is_closing(&self, item: usize, target: usize) -> bool {
        self.waiting.iter().any(|waiting| (waiting.item, waiting.target) == (item, target))
    }

    fn open(&mut self, author: usize, body: usize) {
        let number = ItemNumber::new(i64::try_from(self.items.len() + 1).expect("small")).expect("positive");
        let record = ItemRecord {
            body: Some(BODIES[body].to_owned()),
            state: Some(ItemState::Open),
            author: Some(login(["ann", "bob", "eve", "maint"][author])),
            assignees: Some(Vec::new()),
            created_at: Some(self.now),
            ..ItemRecord::new(ItemType::Issue, number, "The summary is written twice")
        };
        self.items.push(Known { item: merge_record(None, record).item, own_comments: 0, had_a_grace: false });
        self.spoken.push(0);
    }

    fn look_at(&mut self, item: usize, target: usize) {
        if item == target || self.items[target].item.state != ItemState::Open {
            return;
        }
        let maintainers = maintainers();
        let announces = may_announce_close(&GraceCandidate {
            item: &self.items[item].item,
            own_comments: self.items[item].own_comments,
            target: Some(self.pair(target)),
            is_target_closing: self.is_closing(target, item),
            verdict: Verdict::Duplicate,
            confidence: Some(Probability::new(0.99).expect("in range")),
            min_close: Probability::new(0.9).expect("in range"),
            protected_labels: &[],
            maintainers: Some(&maintainers),
            has_a_past: self.items[item].had_a_grace,
        });
        if announces {
            let known = &mut self.items[item];
            known.had_a_grace = true;
            known.own_comments += 1;
            known.item.comments += 1;
            let due = self.now + SignedDuration::from_hours(GRACE);
            self.waiting.push(Announced { item, target, due, spoken: self.spoken[item] });
        }
    }

    fn wait(&mut self, hours: i64) {
        self.now += SignedDuration::from_hours(hours);
        let (due, waiting): (Vec<Announced>, Vec<Announced>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|grace| grace.due <= self.now);
        self.waiting = waiting;
        for grace in due {
            let (source, target) = (self.pair(grace.item), self.pair(grace.target));
            let facts = GraceFacts {
                human_commented: self.spoken[grace.item] > grace.spoken,
                target_closed: target.item.state != ItemState::Open,
                outranked: !may_close_towards(source, target, &maintainers())
                    || self.is_closing(grace.target, grace.item),
                ..GraceFacts::default()
            };
            if grace_end(GraceBasis::Announced, &facts).is_none() {
                self.items[grace.item].item.state = ItemState::Closed;
                self.closed.push((grace.item, grace.target));
            }
        }
    }

    fn play(&mut self, act: &Act) {
        let count = self.items.len();
        self.now += SignedDuration::from_secs(1);
        match act {
            Act::Open { author, body } => self.open(*author, *body),
            Act::Edit { item, of } if count > 0 => self.look_at(item % count, of % count),
            Act::Comment { item, is_bot } if count > 0 => {
                self.items[item % count].item.comments += 1;
                self.spoken[item % count] += u32::from(!is_bot);
            }
            Act::Edit { .. } | Act::Comment { .. } => {}
            Act::Wait { hours } => self.wait(*hours),
        }
    }
}

proptest! {
    #[test]
    fn no_history_closes_an_older_item_towards_a_newer_one(acts in vec(act(), 1..60)) {
        let mut repository = Repository::default();
        for act in &acts {
            repository.play(act);
            for grace in &repository.waiting {
                prop_assert!(!repository.is_closing(grace.target, grace.item), "they are to close each other");
            }
        }
        for (item, target) in &repository.closed {
            let created_at = |at: usize| repository.items[at].item.created_at;
            prop_assert!(created_at(*target) < created_at(*item), "{item} was closed towards {target}");
        }
    }
}

#[test]
fn a_copy_is_closed_towards_its_original() {
    let mut repository = Repository::default();
    let open = || Act::Open { author: 0, body: 0 };
    for act in [open(), open(), Act::Edit { item: 1, of: 0 }, Act::Wait { hours: GRACE + 1 }] {
        repository.play(&act);
    }
    assert_eq!(repository.closed, [(1, 0)]);
}
