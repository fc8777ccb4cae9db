//! How an error of the bed looks when a test unwraps it: as text with its causes, not as Rust structures.
//!
//! In: any error. Out: its `Debug`. A failing test prints `Debug`, and the tail of a log with every line break escaped
//! helps nobody.

/// Writes an error and what caused it, one line each.
pub fn write(error: &dyn std::error::Error, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    write!(f, "{error}")?;
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(f, "\n  because {error}")?;
        cause = error.source();
    }
    Ok(())
}

/// Gives an error type the `Debug` described above.
macro_rules! debug_as_report {
    ($error:ty) => {
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::report::write(self, f)
            }
        }
    };
}
pub(crate) use debug_as_report;
