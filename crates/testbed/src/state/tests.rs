#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

#[test]
fn the_next_process_removes_what_dead_ones_left_and_keeps_the_rest() {
    let all = tempfile::tempdir().unwrap();
    let folder = |name: &str| all.path().join(name);
    for name in ["killed", "alive", "failed"] {
        fs::create_dir_all(folder(name).join("logs")).unwrap();
        File::create(folder(name).join("lock")).unwrap();
    }
    fs::create_dir(folder("never-locked")).unwrap();
    fs::write(folder("failed").join("failed"), "").unwrap();
    let alive = File::open(folder("alive").join("lock")).unwrap();
    alive.lock_shared().unwrap();

    let _own = claim(&folder("own")).unwrap();

    let mut left: Vec<_> = fs::read_dir(all.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["alive", "door", "failed", "own"]);
}
