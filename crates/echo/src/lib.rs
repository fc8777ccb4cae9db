//! A small backend that answers with what it saw.
