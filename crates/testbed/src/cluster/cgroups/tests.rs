use super::*;

#[test]
fn every_hierarchy_is_found_once() {
    let classic = "proc /proc proc rw 0 0\ntmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
        cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
        cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\ncgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n\
        cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
    let found = parse(classic);
    let tops = ["cpu,cpuacct", "pids", "unified"].map(|name| Path::new("/sys/fs/cgroup").join(name));
    assert_eq!(found.tops, tops);
    assert!(!found.unified_only);

    let unified = parse("cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n");
    assert_eq!(unified.tops, [PathBuf::from("/sys/fs/cgroup")]);
    assert!(unified.unified_only);
}
