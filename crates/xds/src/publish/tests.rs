//! What holds in every snapshot.

use super::*;

fn writer() -> Writer {
    Writer::default()
}

fn cluster(name: &str, body: &str) -> Resource {
    Resource::new(Kind::Cluster, name, body.as_bytes().to_vec()).refers_to(Kind::Endpoints, name)
}

fn plain(kind: Kind, name: &str, body: &str) -> Resource {
    Resource::new(kind, name, body.as_bytes().to_vec())
}

fn upsert(upserts: Vec<Resource>) -> Changes {
    Changes { upserts, removes: vec![] }
}

fn remove(kind: Kind, name: &str) -> Changes {
    Changes { upserts: vec![], removes: vec![(kind, name.into())] }
}

#[test]
fn versions_are_of_content_whatever_the_history() {
    let (mut one, mut two) = (writer(), writer());
    one.apply(upsert(vec![cluster("a", "1"), plain(Kind::Endpoints, "a", "e")]));
    let left = one.apply(upsert(vec![cluster("b", "1"), plain(Kind::Listener, "l", "1")]));
    two.apply(upsert(vec![plain(Kind::Listener, "l", "0"), plain(Kind::Endpoints, "a", "e"), cluster("c", "9")]));
    two.apply(upsert(vec![cluster("b", "1"), cluster("a", "0")]));
    two.apply(remove(Kind::Cluster, "c"));
    let right = two.apply(upsert(vec![cluster("a", "1"), plain(Kind::Listener, "l", "1")]));
    for kind in Kind::ALL {
        assert_eq!(left.table(kind).version(), right.table(kind).version(), "{kind}");
        assert_eq!(left.table(kind).changes(right.table(kind)).count(), 0, "{kind}");
    }
}

#[test]
fn the_version_of_endpoints_covers_their_cluster() {
    let mut writer = writer();
    let version = |snapshot: &Snapshot| snapshot.get(Kind::Endpoints, "a").map(|entry| entry.version);
    let bare = version(&writer.apply(upsert(vec![plain(Kind::Endpoints, "a", "e")])));
    let used = version(&writer.apply(upsert(vec![cluster("a", "1")])));
    let changed = version(&writer.apply(upsert(vec![cluster("a", "2")])));
    let back = version(&writer.apply(upsert(vec![cluster("a", "1")])));
    let free = version(&writer.apply(remove(Kind::Cluster, "a")));
    assert_ne!(bare, used);
    assert_ne!(used, changed);
    assert_eq!(used, back);
    assert_eq!(bare, free);
}

#[test]
fn an_equal_resource_is_no_change() {
    let mut writer = writer();
    let before = writer.apply(upsert(vec![cluster("a", "1"), plain(Kind::Endpoints, "a", "e")]));
    let after = writer.apply(upsert(vec![plain(Kind::Endpoints, "a", "e"), cluster("a", "1")]));
    for kind in Kind::ALL {
        assert_eq!(before.table(kind).changes(after.table(kind)).count(), 0);
    }
}

#[test]
fn a_cluster_in_use_stays_until_nothing_points_at_it() {
    let mut writer = writer();
    let route = |body: &str| plain(Kind::Route, "r", body);
    writer.apply(upsert(vec![cluster("a", "1"), route("1").refers_to(Kind::Cluster, "a")]));
    assert!(writer.apply(remove(Kind::Cluster, "a")).get(Kind::Cluster, "a").is_some());
    assert!(writer.apply(upsert(vec![route("2")])).get(Kind::Cluster, "a").is_none());
}

#[test]
fn endpoints_stay_as_long_as_the_cluster_that_uses_them() {
    let mut writer = writer();
    let route = |body: &str| plain(Kind::Route, "r", body);
    let endpoints = |body: &str| plain(Kind::Endpoints, "a", body);
    writer.apply(upsert(vec![cluster("a", "1"), endpoints("e"), route("1").refers_to(Kind::Cluster, "a")]));
    // The route is late; nothing of what it uses may go before it.
    let removes = vec![(Kind::Endpoints, "a".into()), (Kind::Cluster, "a".into())];
    let snapshot = writer.apply(Changes { upserts: vec![], removes });
    assert!(snapshot.get(Kind::Cluster, "a").is_some() && snapshot.get(Kind::Endpoints, "a").is_some());
    let snapshot = writer.apply(upsert(vec![route("2")]));
    assert!(snapshot.get(Kind::Cluster, "a").is_none() && snapshot.get(Kind::Endpoints, "a").is_none());
    // Those that come back stay.
    writer.apply(upsert(vec![cluster("a", "1"), endpoints("e"), route("1").refers_to(Kind::Cluster, "a")]));
    writer.apply(remove(Kind::Endpoints, "a"));
    writer.apply(upsert(vec![endpoints("f")]));
    assert!(writer.apply(upsert(vec![route("3")])).get(Kind::Endpoints, "a").is_some());
}

#[test]
fn a_cluster_that_comes_back_is_no_longer_leaving() {
    let mut writer = writer();
    let route = |body: &str| plain(Kind::Route, "r", body);
    writer.apply(upsert(vec![cluster("a", "1"), route("1").refers_to(Kind::Cluster, "a")]));
    writer.apply(remove(Kind::Cluster, "a"));
    writer.apply(upsert(vec![cluster("a", "2")]));
    assert!(writer.apply(upsert(vec![route("2")])).get(Kind::Cluster, "a").is_some());
}

#[test]
fn removed_and_put_back_in_one_batch_is_there() {
    let mut writer = writer();
    writer.apply(upsert(vec![cluster("a", "1")]));
    let changes = Changes { upserts: vec![cluster("a", "2")], removes: vec![(Kind::Cluster, "a".into())] };
    assert!(writer.apply(changes).get(Kind::Cluster, "a").is_some());
}
