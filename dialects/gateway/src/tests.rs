//! A Gateway with its listeners, on a handful of objects.
