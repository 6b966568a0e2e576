//! Snapshots that must not be used are refused, each with its reason.

use std::fs;

use canonry_domain::{ItemNumber, ItemType};
use canonry_retrieval::{Entry, ItemIndex, read_snapshot, write_snapshot};

fn index() -> ItemIndex {
    let mut index = ItemIndex::new(ItemType::Issue, "model");
    for number in 1..=3 {
        let entry = Entry {
            title: "Crash in read_to_end",
            body: "error: it fails with E0308",
            vector: Some(&[1.0, 2.0, number as f32]),
            changes: None,
            stamp: 9,
        };
        index.upsert(ItemNumber::new(number).expect("a number"), entry).expect("an item");
    }
    index
}

#[test]
fn every_kind_of_damage_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("index");
    write_snapshot(&index(), &path).expect("a snapshot");
    let whole = fs::read(&path).expect("its bytes");
    let told = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("written");
        let error = read_snapshot(&path, ItemType::Issue, "model").expect_err("damaged").to_string();
        error.split_once(": ").expect("a reason").1.to_owned()
    };
    assert_eq!(told(&whole[..10]), "it is cut off");
    assert_eq!(told(&whole[..whole.len() - 9]), "its checksum is wrong");
    assert_eq!(told(&[b"SOMETHING ELSE AT ALL ", &whole[..]].concat()), "it is not a snapshot of an index");
    let mut newer = whole.clone();
    newer[8] = 99;
    assert_eq!(told(&newer), "it has format 99, this Canonry reads format 3");
    for at in (12..whole.len()).step_by(7) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        assert_eq!(told(&flipped), "its checksum is wrong", "byte {at}");
    }
}

#[test]
fn a_snapshot_of_other_items_or_another_model_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("index");
    write_snapshot(&index(), &path).expect("a snapshot");
    for (item_type, model) in [(ItemType::Pr, "model"), (ItemType::Issue, "other")] {
        let error = read_snapshot(&path, item_type, model).expect_err("another").to_string();
        assert!(error.ends_with("it holds issue items with vectors of \"model\""), "{error}");
    }
    let missing = read_snapshot(&folder.path().join("none"), ItemType::Issue, "model").expect_err("missing");
    assert!(missing.to_string().starts_with("read or write"), "{missing}");
}

#[test]
fn writing_again_replaces_and_leaves_nothing_beside() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("index");
    write_snapshot(&ItemIndex::new(ItemType::Issue, "model"), &path).expect("an empty snapshot");
    assert!(read_snapshot(&path, ItemType::Issue, "model").expect("readable").is_empty());
    write_snapshot(&index(), &path).expect("a snapshot");
    assert_eq!(read_snapshot(&path, ItemType::Issue, "model").expect("readable").len(), 3);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[cfg(unix)]
#[test]
fn a_snapshot_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("index");
    // A snapshot that an earlier version left.
    fs::write(&path, "").expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("set");
    write_snapshot(&index(), &path).expect("a snapshot");
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
}
