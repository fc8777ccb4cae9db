//! What `sesame serve` says about a command line and a file that it cannot use, as a process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

/// What it says before it gives up.
fn complaint(args: &[&str], env: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sesame"));
    let output = command.arg("serve").args(args).env_clear().envs(env.iter().copied()).output().unwrap();
    assert!(!output.status.success(), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn everything_wrong_with_the_file_is_shown_at_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sesame.yaml");
    let path = path.to_str().unwrap();
    std::fs::write(
        path,
        "debug: maybe\ntimeouts:\n  request-timeuot: 5s\ntracing:\n  extensionService: a/b\n  maxPathTagLength: -1\n",
    )
    .unwrap();
    for flag in ["-c", "--config-path"] {
        let text = complaint(&[flag, path, "--insecure"], &[]);
        for expected in [
            "error[SES1022]: expected true or false, found text",
            &format!("--> {path}:1:8"),
            "1 | debug: maybe",
            "error[SES1021]: unknown key timeouts.request-timeuot; did you mean request-timeout?",
            &format!("--> {path}:3:3"),
            "error[SES1022]: expected a number from 0 to 1048576",
            &format!("--> {path}:6:21"),
            &format!("there are 3 errors in {path}"),
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
    }
    let text = complaint(&["-c", "no-such-file.yaml"], &[]);
    assert!(text.contains("error[SES1002]") && text.contains("no-such-file.yaml"), "{text}");
}

#[test]
fn contours_names_are_taken_and_what_has_no_effect_is_said_once() {
    let files = [("CONTOUR_CAFILE", "/no/ca.crt"), ("CONTOUR_CERT_FILE", "/no/tls.crt")];
    let flags = ["--contour-key-file=/no/tls.key", "--kubernetes-debug=6"];
    let text = complaint(&flags, &files);
    assert_eq!(text.matches("SES1024").count(), 1, "{text}");
    assert!(text.contains("error[SES1007]") && text.contains("/no/"), "{text}");
}

#[test]
fn a_file_and_an_object_exclude_each_other() {
    let text = complaint(&["-c", "sesame.yaml", "--contour-config-name=contour", "--insecure"], &[]);
    assert!(text.contains("cannot be used with"), "{text}");
}

#[test]
fn a_server_without_certificates_must_be_asked_for() {
    let text = complaint(&[], &[]);
    assert!(text.contains("error[SES1001]") && text.contains("--insecure"), "{text}");
}
