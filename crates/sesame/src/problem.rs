//! What a person reads when a command fails: a code from the one table, the message with its causes, and what to do.

use std::fmt;

use anyhow::Error;
use model::Code;

use crate::logging;

/// A failure that has a row in the table of codes.
#[derive(Debug)]
pub struct Problem {
    code: Code,
    message: String,
}

impl Problem {
    /// A failure, to be put above its cause.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A failure with no cause beneath it.
    pub fn of(code: Code, message: impl Into<String>) -> Error {
        Error::new(Self::new(code, message))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

/// Gives an error its code and says what was being done.
pub trait Coded<T> {
    /// What was being done, under a code.
    fn coded(self, code: Code, message: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: Into<Error>> Coded<T> for Result<T, E> {
    fn coded(self, code: Code, message: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|error| error.into().context(Problem { code, message: message() }))
    }
}

/// The code of a failure, if it has one.
pub fn code(error: &Error) -> Option<Code> {
    error.downcast_ref::<Problem>().map(|problem| problem.code)
}

/// Says on standard error why a command failed, in the format of the log.
pub fn log(error: &Error) {
    if logging::is_json() {
        match error.downcast_ref::<Problem>() {
            Some(problem) => tracing::error!(code = %problem.code, help = problem.code.help(), "{error:#}"),
            None => tracing::error!("{error:#}"),
        }
    } else {
        eprintln!("{}", report(error));
    }
}

/// The text for the terminal.
pub fn report(error: &Error) -> String {
    match error.downcast_ref::<Problem>() {
        Some(problem) => format!("error[{}]: {error:#}\nhelp: {}", problem.code, problem.code.help()),
        None => format!("error: {error:#}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_code_the_causes_and_what_to_do() {
        let refused = std::io::Error::other("no such file");
        let error = Err::<(), _>(refused).coded(Code::FileNotReadable, || "ca.crt cannot be read".to_owned());
        assert_eq!(
            report(&error.expect_err("it was an error")),
            "error[SES1002]: ca.crt cannot be read: no such file\nhelp: check the path and its permissions"
        );
    }
}
