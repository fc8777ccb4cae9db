//! The dialect on a handful of objects.
