//! The test programs that mostly wait: for pods to start, for rollouts, for an API server that is away. They run beside the others, one
//! after the other.
//!
//! Listed is every program that starts nodes of Kubernetes. They leave the processors idle for minutes, and what two clusters at once
//! would do to each other need not be thought about: `cluster_killed` looks at all control groups of clusters on the machine.
//! A program that is quick, or busy, belongs with the others: a third program beside two would only take their turns.

/// Package and program.
const WAITING: [(&str, &str); 5] = [
    // Rollouts, kills and outages of an installation on two nodes, under load.
    ("sesame", "cluster"),
    // The conformance suite of Gateway API: some hundred objects, each with pods or a status to wait for.
    ("sesame", "conformance"),
    ("testbed", "cluster"),
    ("testbed", "cluster_killed"),
    ("testbed", "cluster_up"),
];

/// Whether the program of this [name](super::programs::Program::name) is one of them.
pub fn is(name: &str) -> bool {
    WAITING.iter().any(|(package, program)| name == format!("-p {package} --test {program}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// All sources of a test program: its file, or its folder.
    fn text(place: &Path) -> String {
        if place.is_file() {
            return fs::read_to_string(place).unwrap();
        }
        fs::read_dir(place).unwrap().map(|entry| text(&entry.unwrap().path())).collect()
    }

    #[test]
    fn every_program_that_starts_nodes_is_listed_and_no_other() {
        let crates = fs::read_dir(crate::root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
        let programs = crates.flat_map(|package| {
            let programs = fs::read_dir(package.join("tests")).into_iter().flatten().map(|entry| entry.unwrap().path());
            programs.map(move |program| (package.clone(), program))
        });
        let starts_nodes = programs.filter(|(_, program)| text(program).contains("cluster::available()"));
        let found: BTreeSet<_> = starts_nodes
            .map(|(package, program)| [package.file_name(), program.file_stem()].map(|name| name.unwrap().to_owned()))
            .collect();
        let listed: BTreeSet<_> = WAITING.iter().map(|(package, program)| [package, program].map(Into::into)).collect();
        assert_eq!(found, listed);
    }

    #[test]
    fn a_name_is_compared_whole() {
        assert!(is("-p sesame --test cluster"));
        assert!(!is("-p source --test cluster") && !is("-p testbed --bin cluster"));
    }
}
