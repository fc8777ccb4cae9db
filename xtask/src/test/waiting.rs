//! The test programs that mostly wait: for pods to start, for rollouts, for an API server that is away. They run beside the others, one
//! after the other.
//!
//! Every program that starts nodes of Kubernetes is listed. They leave the processors idle for minutes, and what two clusters at once
//! would do to each other need not be thought about: `cluster_killed` looks at all control groups of clusters on the machine.
//! Another program belongs here if it takes minutes and little of the processors: `cargo xtask test` ends with the slowest. The two lanes
//! should take about as long; one that is busy belongs with the others, because beside them it would only take their turns.

/// Package and program.
const WAITING: [(&str, &str); 6] = [
    // Rollouts, kills and outages of an installation on two nodes, under load.
    ("sesame", "cluster"),
    // The conformance suite of Gateway API: some hundred objects, each with pods or a status to wait for.
    ("sesame", "conformance"),
    // No nodes, but an API server that dates objects by the second, so that cases make them a second apart, and that is away for a minute.
    ("sesame", "serve"),
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

    /// Package and program of every test program of `crates`, with its sources.
    fn programs() -> impl Iterator<Item = ([String; 2], String)> {
        let crates = fs::read_dir(crate::root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
        let programs = crates.flat_map(|package| {
            let programs = fs::read_dir(package.join("tests")).into_iter().flatten().map(|entry| entry.unwrap().path());
            programs.map(move |program| (package.clone(), program))
        });
        programs.map(|(package, program)| {
            let names =
                [package.file_name(), program.file_stem()].map(|name| name.unwrap().to_str().unwrap().to_owned());
            (names, text(&program))
        })
    }

    fn listed() -> BTreeSet<[String; 2]> {
        WAITING.iter().map(|(package, program)| [package, program].map(|name| (*name).to_owned())).collect()
    }

    #[test]
    fn every_program_that_starts_nodes_is_listed() {
        let starts_nodes = programs().filter(|(_, text)| text.contains("cluster::available()")).map(|(names, _)| names);
        let starts_nodes: BTreeSet<_> = starts_nodes.collect();
        assert!(starts_nodes.len() >= 5 && starts_nodes.is_subset(&listed()), "{starts_nodes:?}");
    }

    #[test]
    fn every_program_that_is_listed_exists() {
        assert!(listed().is_subset(&programs().map(|(names, _)| names).collect()));
    }

    #[test]
    fn a_name_is_compared_whole() {
        assert!(is("-p sesame --test cluster"));
        assert!(!is("-p source --test cluster") && !is("-p testbed --bin cluster"));
    }
}
