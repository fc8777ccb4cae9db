//! Who is told where something that an object asked for lost against another's.
//!
//! In: the tables in which objects compete for a host, a listener or a port. Out: an index of each by the objects that lost there,
//! of which a reader gets the verdicts about its own object alone: many may lose on one host.

use assemble::{shared_routes::Selected, tls, virtual_host};
use engine::{Index, PartIndex, Table};
use model::{ObjectRef, Verdict};
use std::marker::PhantomData;

use crate::{
    hosts::conditional::ConditionalRow,
    ports::{ListenerRow, PortsOfNumber, Stream},
};

/// A row in which objects compete.
pub trait Contested {
    /// A verdict for each that lost; sorted.
    fn lost(&self) -> &[Verdict];
}

macro_rules! contested {
    ($($row:ty)*) => {
        $(
            impl Contested for $row {
                fn lost(&self) -> &[Verdict] {
                    &self.lost
                }
            }
        )*
    };
}

contested!(virtual_host::Assembled tls::Assembled Selected ListenerRow PortsOfNumber Stream);

impl Contested for ConditionalRow {
    fn lost(&self) -> &[Verdict] {
        &self.assembled.lost
    }
}

/// The rows of a table by the objects that lost there.
pub struct Losers<T>(PhantomData<T>);

impl<T: Table> Index for Losers<T>
where
    T::Value: Contested,
{
    type Of = T;
    type Key = ObjectRef;
    const NAME: &'static str = "by loser";

    fn keys(_: &T::Key, row: &T::Value) -> impl IntoIterator<Item = ObjectRef> {
        row.lost().iter().map(|verdict| verdict.origin.object.clone()).collect::<Vec<_>>()
    }
}

impl<T: Table> PartIndex for Losers<T>
where
    T::Value: Contested,
{
    type Part<'v> = &'v [Verdict];

    fn part<'v>(object: &ObjectRef, row: &'v T::Value) -> &'v [Verdict] {
        Verdict::about(object, row.lost())
    }
}
