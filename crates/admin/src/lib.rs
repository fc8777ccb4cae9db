//! What operators look at.
