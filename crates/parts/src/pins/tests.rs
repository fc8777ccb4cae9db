//! The pins in the tree are whole, and mistakes in a file of pins are named.
#![allow(clippy::unwrap_used, reason = "a test that cannot read its own text may panic")]

use super::*;

const SYSTEM: &str = "[system]\ngroups = []\n";

fn parse(text: &str) -> Result<Pins, Bad> {
    Pins::parse(&format!("{text}\n{SYSTEM}"))
}

#[test]
fn the_tree_pins_what_its_tests_stand_on() {
    let versions = |name| pins().part(name).map(|part| part.version.as_str());
    assert_eq!(versions("envoy"), Some("1.40.0"));
    assert_eq!(versions("kube-apiserver"), Some("1.37.1"));
    assert_eq!(versions("kubelet"), Some("1.36.4"));
    assert_eq!(versions("gateway-api-crds"), Some("1.7.0"));
    assert_eq!(versions("contour-crds"), Some("1.33.6"));
    assert_eq!(pins().groups(), ["acme", "cluster", "conformance", "demo", "differential", "lint", "peers", "test"]);
}

#[test]
fn the_demo_needs_envoy_and_no_compiler() {
    let demo: Vec<_> = pins().parts.iter().filter(|part| part.groups.iter().any(|group| group == "demo")).collect();
    assert!(demo.iter().all(|part| matches!(part.recipe, Recipe::Wheel(_))), "{demo:?}");
}

#[test]
fn a_go_part_has_its_modules_version() {
    let pins = parse(
        "[module.m]\npath = \"example.org/m\"\nversion = \"1.2.3\"\n\
         [[part]]\nname = \"p\"\ngroups = [\"test\"]\ngo = { module = \"m\", package = \"example.org/m/cmd/p\" }",
    )
    .unwrap();
    assert_eq!(pins.parts[0].folder(), "p-1.2.3");
    assert!(pins.parts[0].is_program());
}

#[test]
fn mistakes_are_named() {
    let said = |text: &str| parse(text).unwrap_err().to_string();
    assert_eq!(
        said("[[part]]\nname = \"p\"\nversion = \"1\"\ngroups = []"),
        "part \"p\" needs exactly one of `wheel`, `go`, `files`, `crate`"
    );
    assert_eq!(
        said("[[part]]\nname = \"p\"\ngroups = []\ngo = { module = \"m\", package = \".\" }"),
        "part \"p\" is of module \"m\", which the pins do not have"
    );
    assert_eq!(
        said("[[part]]\nname = \"p\"\ngroups = []\ncrate = { package = \"p\" }"),
        "part \"p\" needs a version, or a module that has one, not both"
    );
    let twice = "[[part]]\nname = \"p\"\nversion = \"1\"\ngroups = []\ncrate = { package = \"p\" }\n";
    assert_eq!(said(&twice.repeat(2)), "part \"p\" stands twice in the pins");
    assert!(said("[[part]]\nnam = \"p\"").contains("unknown field"), "a typing error must not pass");
}
