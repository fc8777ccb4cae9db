//! The control groups of a cluster: the only thing of it that the kernel keeps when its namespaces go.
//!
//! In: a name. Out: a group of that name at the top of every hierarchy, below which the kubelets put their pods;
//! removed with the cluster. A process that was killed cannot remove its groups, so whoever starts a cluster next does:
//! as long as the owner lives it holds a lock on the group's folder in the first hierarchy (cgroup file systems take
//! locks as others do), and a folder that can be locked is nobody's. No process is ever killed here; those of a dead
//! components died with its process namespace.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Error;

const PREFIX: &str = "sesame-components-";

/// How long processes that were just killed may take to leave their group.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The top folders of all hierarchies of this machine: one with the unified hierarchy alone, several otherwise.
#[derive(Debug, Clone)]
struct Hierarchies {
    tops: Vec<PathBuf>,
    unified_only: bool,
}

impl Hierarchies {
    fn of_this_machine() -> Result<Hierarchies, Error> {
        let path = Path::new("/proc/self/mounts");
        let text = fs::read_to_string(path).map_err(|source| cannot("read", path, source))?;
        let found = parse(&text);
        if found.tops.is_empty() {
            let missing = io::Error::new(io::ErrorKind::NotFound, "no control group hierarchy is mounted");
            return Err(cannot("read", path, missing));
        }
        Ok(found)
    }

    /// The hierarchy whose folders carry the locks.
    fn locks(&self) -> &Path {
        &self.tops[0]
    }
}

fn parse(mounts: &str) -> Hierarchies {
    let mut tops = Vec::new();
    let mut classic = false;
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        let (Some(point), Some(kind)) = (fields.nth(1), fields.next()) else { continue };
        classic |= kind == "cgroup";
        if matches!(kind, "cgroup" | "cgroup2") && !tops.iter().any(|top| top == Path::new(point)) {
            tops.push(PathBuf::from(point));
        }
    }
    Hierarchies { tops, unified_only: !classic }
}

/// The groups of one cluster.
#[derive(Debug)]
pub(super) struct Cgroups {
    hierarchies: Hierarchies,
    name: String,
    /// Held for its lock.
    _lock: File,
}

impl Cgroups {
    /// Removes what dead clusters left, and makes the groups of a new one. `name` should be one that nobody else uses.
    pub(super) fn create(name: &str) -> Result<Cgroups, Error> {
        let hierarchies = Hierarchies::of_this_machine()?;
        sweep(&hierarchies);
        let name = format!("{PREFIX}{name}");
        let lock = claim(&hierarchies.locks().join(&name))?;
        let groups = Cgroups { hierarchies, name, _lock: lock };
        groups.make("")?;
        Ok(groups)
    }

    /// Makes a group below, in every hierarchy, and says what a kubelet calls it.
    pub(super) fn make(&self, below: &str) -> Result<String, Error> {
        for top in &self.hierarchies.tops {
            let group = top.join(&self.name).join(below);
            fs::create_dir_all(&group).map_err(|source| cannot("make", &group, source))?;
            inherit_cpus(&group).map_err(|source| cannot("prepare", &group, source))?;
            if self.hierarchies.unified_only {
                delegate(top);
                delegate(&group);
            }
        }
        Ok(Path::new("/").join(&self.name).join(below).display().to_string())
    }

    /// Removes the groups, once the processes in them are gone.
    pub(super) fn remove(&self) -> Result<(), Error> {
        remove(&self.hierarchies, &self.name, TIMEOUT)
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        // What stays is found by the sandbox, or by the next cluster.
        let _ = self.remove();
    }
}

/// Makes and locks a folder, against others who sweep at the same time.
fn claim(folder: &Path) -> Result<File, Error> {
    let failed = |source| cannot("make", folder, source);
    let until = Instant::now() + TIMEOUT;
    loop {
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        // Between making and locking it, it may have been swept: then it is gone, or about to go, or another one.
        if let Ok(lock) = File::open(folder)
            && lock.try_lock().is_ok()
            && same(&lock, folder)
        {
            return Ok(lock);
        }
        if Instant::now() > until {
            return Err(failed(io::Error::new(io::ErrorKind::WouldBlock, "somebody else holds it")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(one), Ok(other)) = (file.metadata(), fs::metadata(path)) else { return false };
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Removes the groups of every cluster whose owner is gone. What cannot be removed yet is left for the next one.
fn sweep(hierarchies: &Hierarchies) {
    let Ok(folders) = fs::read_dir(hierarchies.locks()) else { return };
    for folder in folders.flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        if name.starts_with(PREFIX)
            && let Ok(lock) = File::open(folder.path())
            && lock.try_lock().is_ok()
        {
            // Locked until it is gone, so that nobody takes it for his own meanwhile.
            let _ = remove(hierarchies, &name, Duration::from_secs(1));
        }
    }
}

fn remove(hierarchies: &Hierarchies, name: &str, timeout: Duration) -> Result<(), Error> {
    let until = Instant::now() + timeout;
    // The folder with the lock goes last: until then the others know whose they are.
    for top in hierarchies.tops.iter().rev() {
        let group = top.join(name);
        // The kernel tells nobody when a group is empty, and with it gone there is nothing left to watch.
        while let Err(error) = remove_tree(&group) {
            if Instant::now() > until {
                return Err(cannot("remove", &group, error));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(())
}

/// Removes a group and those below it. Its files are the kernel's and go with it.
fn remove_tree(group: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    match fs::remove_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A new classic cpuset has no processors, and nothing can run in it: it gets those of the group above.
fn inherit_cpus(group: &Path) -> io::Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let (own, above) = (group.join(file), group.with_file_name(file));
        // In the unified hierarchy empty means all, and its top has no such file.
        if above.exists() && fs::read_to_string(&own).is_ok_and(|set| set.trim().is_empty()) {
            fs::write(&own, fs::read(above)?)?;
        }
    }
    Ok(())
}

/// Lets groups below have the controllers that this one has. What a controller refuses, a kubelet will name.
fn delegate(group: &Path) {
    let controllers = fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default();
    for controller in controllers.split_whitespace() {
        let _ = fs::write(group.join("cgroup.subtree_control"), format!("+{controller}"));
    }
}

fn cannot(verb: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Cgroup { verb, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
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
}
