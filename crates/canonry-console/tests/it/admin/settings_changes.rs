//! Settings: what each one does, and a change of one in the whole file.

use crate::reading::{assert_harmless, words};
use crate::world::Who;
use crate::world::service::ServiceWorld;

#[tokio::test]
async fn each_setting_has_its_value_its_meaning_and_a_change() {
    let world = ServiceWorld::new().await;
    let page = world.page(Who::Rita, "/r/tide/pool/settings").await;
    assert!(page.contains("<code>maxPerDay</code>") && page.contains("<code>10</code>"), "{page}");
    assert!(words(&page).contains("default: shadow"), "the mode differs from its default: {page}");
    assert!(page.contains("?change=close.maxPerDay#change"), "{page}");
    let chosen = world.page(Who::Rita, "/r/tide/pool/settings?change=triage.mode").await;
    assert!(chosen.contains("id=\"change\"") && chosen.contains("<option selected>grace</option>"), "{chosen}");
    assert!(!chosen.contains("Replace the content"), "{chosen}");
}

#[tokio::test]
async fn a_change_is_shown_in_the_whole_file_and_a_wrong_one_is_not() {
    let world = ServiceWorld::new().await;
    let hostile = world.page(Who::Rita, "/r/tide/pool/settings?change=triage.mode&to=suggest").await;
    // It has a character that nobody can see, which would be pasted as another one.
    assert!(hostile.contains("Put this into") && !hostile.contains("Replace the content"), "{hostile}");
    let file = "# Ours.\ntriage:\n  mode: grace\nmentions:\n  handle: pool\n";
    world.store.repos().write_settings(world.repo.id, Some(file), world.now).await.expect("written");
    let change = async |query: &str| world.page(Who::Rita, &format!("/r/tide/pool/settings?{query}")).await;
    let mode = change("change=triage.mode&to=suggest").await;
    assert!(
        mode.contains("triage:\n  mode: suggest\nmentions:\n  handle: pool") && !mode.contains("Put this into"),
        "{mode}"
    );
    assert!(
        words(&mode).contains("Replace the content of .canonry.yml with this. Only triage.mode changes:"),
        "{mode}"
    );
    assert_harmless(&mode);
    let wrong = change("change=close.maxPerDay&to=%3Cscript%3E").await;
    assert_harmless(&wrong);
    assert!(!wrong.contains("Replace the content") && wrong.contains("must be"), "{wrong}");
    let unknown = change("change=close.nothing&to=1").await;
    assert!(!unknown.contains("id=\"change\""), "{unknown}");
}
