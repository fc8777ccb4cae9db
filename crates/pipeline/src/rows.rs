//! Tables that have a row for each key of an index and nothing in it: whether there is such a key is all that is read of them, so
//! that whoever depends on it is woken when the first comes or the last goes, and not by those between.

macro_rules! rows_without_value {
    ($($table:ident of $key:ty, $name:literal, $doc:literal;)*) => {
        $(
            #[doc = $doc]
            pub struct $table;

            impl engine::Table for $table {
                type Key = $key;
                type Value = ();
                const NAME: &'static str = $name;
            }

            impl engine::Derived for $table {
                fn compute(&self, _: &$key, _: &mut engine::Reads<'_>) -> Option<()> {
                    Some(())
                }
            }
        )*
    };
}
