//! Comments: each text by a stranger, and by a maintainer who repeats it.

use crate::injection::injection_world::{InjectionWorld, NEAR};
use crate::injection::suite::{SuiteResults, TextEffect};
use crate::injection::texts::{InjectionPlace, at, kinds};

pub(crate) async fn run(world: &InjectionWorld, results: &mut SuiteResults) {
    for kind in kinds() {
        for text in at(&[InjectionPlace::Comment]).iter().filter(|text| text.kind == kind) {
            for (by, number) in [("mallory", 5), ("maint", 6)] {
                world.meanwhile(|world| world.comment(NEAR, number, by, &text.whole()));
            }
            results.count(text, TextEffect::default());
        }
        world.settle().await;
        // A harmless comment is not answered either.
        assert_eq!(world.writes(), Vec::<String>::new(), "{kind}");
    }
    world.assert_unmoved().await;
}
