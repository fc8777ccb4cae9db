//! A missing tool is named with how to get it, and an old Go is as good as none.
#![allow(clippy::unwrap_used, reason = "a test that finds no error where there must be one may panic")]

use parts::pins;

use super::*;

#[test]
fn all_that_is_missing_is_named_at_once() {
    let finder = Finder::new(pins(), |_| None);
    let recipes = pins().parts.iter().map(|part| &part.recipe);
    let said = check(&finder, recipes, true).unwrap_err().to_string();
    for tool in ["cc", "make", "ip", "unshare", "setpriv", "go, 1.21 or newer", "python3 with pip"] {
        assert!(said.contains(&format!("\n  {tool} (")), "{tool} in {said}");
    }
}

#[test]
fn nothing_is_asked_for_in_vain() {
    let finder = Finder::new(pins(), |_| None);
    check(&finder, std::iter::empty(), false).unwrap();
    let envoy = &pins().part("envoy").unwrap().recipe;
    let said = check(&finder, std::iter::once(envoy), false).unwrap_err().to_string();
    assert!(said.contains("python3") && !said.contains("go,"), "{said}");
}

#[test]
fn an_old_go_will_not_do() {
    for (version, does) in
        [("go1.19.8", false), ("go1.21.0", true), ("go1.26.8", true), ("go1.27rc1", true), ("go2.0", true)]
    {
        assert_eq!(fetches_toolchains(version), does, "{version}");
    }
    assert!(!fetches_toolchains("devel"));
}
