//! Which of several places wins, and what is said when none has the part.
#![allow(clippy::unwrap_used, reason = "a test whose own folder cannot be made may panic")]

use std::collections::HashMap;
use std::fs;

use super::*;

/// A folder of this test's own, gone when it ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("sesame-parts-{}-{test}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    /// Makes an empty file, and the folders above it.
    fn file(&self, path: &str) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn finder<const N: usize>(env: [(&str, &Path); N]) -> Finder<'static> {
    let env: HashMap<String, OsString> = env.iter().map(|(k, v)| ((*k).to_owned(), v.as_os_str().to_owned())).collect();
    Finder::new(pins(), move |name| env.get(name).cloned())
}

#[test]
fn the_cache_is_where_it_is_told_to_be() {
    let (a, b, home) = (Path::new("/a"), Path::new("/b"), Path::new("/home/me"));
    let all = [("SESAME_CACHE", a), ("XDG_CACHE_HOME", b), ("HOME", home)];
    assert_eq!(finder(all).cache(), Ok("/a".into()));
    assert_eq!(finder([all[1], all[2]]).cache(), Ok("/b/sesame".into()));
    assert_eq!(finder([all[2]]).cache(), Ok("/home/me/.cache/sesame".into()));
    assert_eq!(finder([("SESAME_CACHE", Path::new("")), all[1]]).cache(), Ok("/b/sesame".into()));
    assert_eq!(finder([]).cache(), Err(Missing::NoCache));
}

#[test]
fn a_part_stands_in_the_cache() {
    let scratch = Scratch::new("cache");
    let finder = finder([("SESAME_CACHE", &scratch.0)]);
    let said = finder.program("envoy").unwrap_err().to_string();
    assert!(said.contains("make parts") && said.contains("SESAME_ENVOY") && said.contains("1.40.0"), "{said}");

    let envoy = scratch.file("parts/envoy-1.40.0/bin/envoy");
    assert_eq!(finder.program("envoy"), Ok(envoy));
    scratch.file("parts/gateway-api-crds-1.7.0/standard/x.yaml");
    assert_eq!(finder.folder("gateway-api-crds"), Ok(scratch.0.join("parts/gateway-api-crds-1.7.0")));
}

#[test]
fn a_variable_wins_and_is_never_passed_over() {
    let scratch = Scratch::new("override");
    scratch.file("parts/kube-apiserver-1.37.1/bin/kube-apiserver");
    let own = scratch.file("own");
    let with = |path: &Path| finder([("SESAME_CACHE", &scratch.0), ("SESAME_KUBE_APISERVER", path)]);
    assert_eq!(with(&own).program("kube-apiserver"), Ok(own));
    let said = with(Path::new("/nowhere/at/all")).program("kube-apiserver").unwrap_err().to_string();
    assert_eq!(said, "SESAME_KUBE_APISERVER says /nowhere/at/all, but there is no such program");
}

#[test]
fn a_system_program_is_found_on_the_path() {
    let scratch = Scratch::new("system");
    let runc = scratch.file("bin/runc");
    assert_eq!(finder([("PATH", runc.parent().unwrap())]).program("runc"), Ok(runc));
    assert_eq!(finder([]).program("vim"), Err(Missing::Unknown { name: "vim".into() }));
}

#[test]
fn files_are_not_a_program() {
    let said = finder([("HOME", Path::new("/nowhere"))]).program("contour-crds");
    assert_eq!(said, Err(Missing::Unknown { name: "contour-crds".into() }));
}
