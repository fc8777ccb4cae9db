//! The closing line, from what cargo and the harness print.

use super::*;

fn counted(lines: &str, errors: &str, success: bool) -> Count {
    let mut count = Count::default();
    lines.lines().for_each(|line| count.take_line(line));
    let mut second = Count::default();
    errors.lines().for_each(|line| second.take_line(line));
    count.add(second);
    count.take_end(success);
    count
}

const TWO_PROGRAMS: &str = "\
running 2 tests
test a ... ok
test b ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

running 1 test
test result: \u{1b}[32mok\u{1b}[0m. 1 passed; 0 failed; 0 ignored; 0 measured; 4 filtered out; finished in 12.00s
";

#[test]
fn all_programs_are_summed() {
    let count = counted(TWO_PROGRAMS, "", true);
    assert_eq!(count.summary(), "3 passed, 0 failed");
    assert!(count.is_good(true));
}

#[test]
fn a_failed_test_is_a_failure() {
    let lines = "test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.2s\n\
                 error: 1 target failed:\n    `-p parts --lib`";
    let count = counted(lines, "", false);
    assert_eq!(count.summary(), "5 passed, 2 failed");
    assert!(!count.is_good(false));
}

#[test]
fn a_program_that_died_counts_as_a_failed_test() {
    let lines = format!(
        "{TWO_PROGRAMS}test result: FAILED. 0 passed; 1 failed; 0 ignored\n\
         \u{1b}[1m\u{1b}[91merror\u{1b}[0m: 3 targets failed:\n    `-p a --lib`\n    `-p b --test x`\n    `-p c --test y`"
    );
    assert_eq!(counted(&lines, "", false).summary(), "3 passed, 3 failed");
}

#[test]
fn what_does_not_build_is_no_success() {
    let count = counted("error: could not compile `parts` (lib) due to 1 previous error", "", false);
    assert_eq!(count.summary(), "the tests were not all built or run: see above\n0 passed, 0 failed");
    assert!(!count.is_good(false));
}

#[test]
fn lack_of_root_is_told_and_fails_in_ci() {
    let count = counted(TWO_PROGRAMS, "skipped: needs root: node::two_nodes\n", true);
    assert_eq!(
        count.summary(),
        "skipped for lack of root (run as root to have them):\n  node::two_nodes: needs root\n2 passed, 0 failed, 1 skipped"
    );
    assert!(count.is_good(false));
    assert!(!count.is_good(true));
}

#[test]
fn a_harness_of_its_own_may_skip_too() {
    let lines = "test one_node ... ignored, needs root\n\
                 test on_a_cluster ... ignored, SESAME_KUBECONFIG is not set\n\
                 test result: ok. 4 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s";
    let count = counted(lines, "", true);
    assert_eq!(
        count.summary(),
        "skipped for lack of root (run as root to have them):\n  one_node: needs root\n\
         skipped:\n  on_a_cluster: SESAME_KUBECONFIG is not set\n4 passed, 0 failed, 2 skipped"
    );
    assert!(!count.is_good(true));
}

#[test]
fn a_skip_for_another_reason_does_not_fail_ci() {
    assert!(counted(TWO_PROGRAMS, "skipped: needs a cluster: root_path", true).is_good(true));
}
