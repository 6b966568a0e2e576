//! The permissions of a SQLite database file.

#![cfg(unix)]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use canonry_store::Store;
use canonry_testkit::database::TestDatabase;
use jiff::Timestamp;

#[tokio::test]
async fn a_database_is_made_for_its_user_alone() {
    let database = TestDatabase::sqlite();
    let path = database.url().trim_start_matches("sqlite:").to_owned();
    let store = Store::open(&database.url().parse().expect("a URL"), Timestamp::UNIX_EPOCH).await.expect("opens");
    store.repos().ensure(&"tide/pool".parse().expect("a name"), Timestamp::UNIX_EPOCH).await.expect("stored");
    let mode = |path: &str| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    for beside in ["", "-wal", "-shm"] {
        assert_eq!(mode(&format!("{path}{beside}")), 0o600, "{beside}");
    }
    // Permissions that an operator set stay.
    std::fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("set");
    store.disconnect().await;
    Store::open(&database.url().parse().expect("a URL"), Timestamp::UNIX_EPOCH).await.expect("opens");
    assert_eq!(mode(&path), 0o640);
}
