#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use clap::{Args, FromArgMatches};

use super::*;

#[derive(Debug, clap::Args)]
struct Flags {
    #[arg(long, env = "SESAME_TEST_NAMESPACE", default_value = "none")]
    namespace: String,
    #[arg(long = "sesame-cafile", default_value = "none")]
    ca: String,
    #[arg(long = "sesame", default_value = "none")]
    address: String,
    #[arg(long, default_value = "none")]
    sesamestreet: String,
}

fn command(set: &'static [&'static str]) -> Command {
    with_contour_names(Flags::augment_args(Command::new("test")), |name| set.contains(&name))
}

#[test]
fn flags_go_by_both_names() {
    for args in
        [["test", "--sesame=a:1", "--sesame-cafile=ca.crt"], ["test", "--contour=a:1", "--contour-cafile=ca.crt"]]
    {
        let flags = Flags::from_arg_matches(&command(&[]).get_matches_from(args)).unwrap();
        assert_eq!((flags.address.as_str(), flags.ca.as_str()), ("a:1", "ca.crt"));
    }
    command(&[]).try_get_matches_from(["test", "--contourstreet=a"]).unwrap_err();
}

#[test]
fn contours_variable_counts_where_ours_is_not_set() {
    let env = |set| {
        let command = command(set);
        let arg = command.get_arguments().find(|arg| arg.get_id() == "namespace").unwrap().clone();
        arg.get_env().unwrap().to_str().unwrap().to_owned()
    };
    assert_eq!(env(&[]), "SESAME_TEST_NAMESPACE");
    assert_eq!(env(&["CONTOUR_TEST_NAMESPACE"]), "CONTOUR_TEST_NAMESPACE");
    assert_eq!(env(&["CONTOUR_TEST_NAMESPACE", "SESAME_TEST_NAMESPACE"]), "SESAME_TEST_NAMESPACE");
}

#[test]
fn subcommands_have_both_names_too() {
    let command = Command::new("top").subcommand(Flags::augment_args(Command::new("test")));
    let matches = with_contour_names(command, |_| false).get_matches_from(["top", "test", "--contour", "a:1"]);
    let (_, matches) = matches.subcommand().unwrap();
    assert_eq!(Flags::from_arg_matches(matches).unwrap().address, "a:1");
}

#[test]
fn a_fleet_is_a_namespace_and_a_name() {
    assert_eq!(fleet("team-a/public").unwrap(), FleetName::new("team-a", "public"));
    for wrong in ["public", "/public", "team-a/", "team-a/public/x", "Team/a", "a b/c"] {
        fleet(wrong).unwrap_err();
    }
}

#[test]
fn the_version_of_envoy_is_one_in_every_place() {
    assert!(ENVOY_IMAGE.ends_with(&format!("-v{ENVOY_VERSION}")));
    let pins = include_str!("../../../../parts/pins.toml");
    assert!(pins.contains(&format!("version = \"{ENVOY_VERSION}\"")), "parts/pins.toml has another version");
}

#[test]
fn what_is_wrong_with_flags_fits_on_a_line() {
    let error = |args: &[&str]| one_line(&command(&[]).try_get_matches_from(args).unwrap_err().render().to_string());
    assert_eq!(
        error(&["test", "--sesame-cafil=x"]),
        "error: unexpected argument '--sesame-cafil' found; a similar argument exists: '--sesame-cafile'; see --help"
    );
    let required = Command::new("test").arg(clap::Arg::new("file").value_name("FILE").required(true));
    let missing = required.try_get_matches_from(["test"]).unwrap_err().render().to_string();
    assert_eq!(one_line(&missing), "error: the following required arguments were not provided: <FILE>; see --help");
}
